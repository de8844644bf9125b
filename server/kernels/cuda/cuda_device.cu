// The device behind device.h, on the runtime of CUDA. Compiled a second time against the emulation
// of that runtime in tests/cuda/emulation.
#include <cuda_runtime.h>

#include <memory>
#include <utility>
#include <vector>

#include "server/kernels/cuda/cuda_check.cuh"
#include "server/kernels/cuda/device.h"
#include "server/kernels/cuda/enqueue.cuh"
#include "server/kernels/cuda/large_product.cuh"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {
namespace {

// The least that the kernels were built for.
constexpr int32_t kLeastMajor = 8;

int32_t CountDevices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  const std::string why = error == cudaSuccess ? "it counts none" : cudaGetErrorString(error);
  cudaGetLastError();
  throw DeviceError(DeviceError::Kind::kAbsent,
                    "CUDA finds no device (" + why +
                        "); expected an NVIDIA GPU with a driver for CUDA 13; install the driver, "
                        "give the container its GPUs, or use --device cpu");
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int32_t number) : number_(number) {
    const int32_t count = CountDevices();
    if (number < 0 || number >= count) {
      throw DeviceError(DeviceError::Kind::kAbsent,
                        "there is no CUDA device " + std::to_string(number) + "; expected 0.." +
                            std::to_string(count - 1) +
                            "; see nvidia-smi, and CUDA_VISIBLE_DEVICES");
    }
    cudaDeviceProp properties = {};
    Check(cudaGetDeviceProperties(&properties, number), "asking for the device's properties");
    traits_ = {properties.name, properties.major, properties.minor,
               static_cast<int64_t>(properties.totalGlobalMem)};
    if (properties.major < kLeastMajor) {
      throw DeviceError(
          DeviceError::Kind::kAbsent,
          "CUDA device " + std::to_string(number) + ", " + traits_.name +
              ", has compute capability " + std::to_string(properties.major) + "." +
              std::to_string(properties.minor) +
              "; expected 8.0 or later; use a device of the Ampere generation or a later one, or "
              "--device cpu");
    }
    Check(cudaSetDevice(number), "choosing the device");
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
    std::unique_ptr<Gemm> gemm = OpenGemm(stream_, traits_.no_gemm);
    if (gemm == nullptr) return;
    traits_.gemm = gemm->name();
    large_products_ = std::make_unique<LargeProducts>(*this, stream_, std::move(gemm));
  }

  // Whoever tears down can do nothing about errors.
  ~CudaDevice() override {
    cudaStreamSynchronize(stream_);
    for (const cudaGraphExec_t recording : recordings_) cudaGraphExecDestroy(recording);
    large_products_.reset();
    cudaStreamDestroy(stream_);
  }

  const DeviceTraits& traits() const override { return traits_; }

  void* Allocate(MemoryKind kind, int64_t bytes) override {
    Use();
    void* memory = nullptr;
    const auto size = static_cast<size_t>(bytes > 0 ? bytes : 1);
    if (kind == MemoryKind::kDevice) {
      Check(cudaMalloc(&memory, size), "getting memory of the device");
    } else {
      Check(cudaMallocHost(&memory, size), "getting pinned memory");
    }
    return memory;
  }

  void Free(MemoryKind kind, void* memory) override {
    if (memory == nullptr) return;
    cudaStreamSynchronize(stream_);
    if (kind == MemoryKind::kDevice) {
      cudaFree(memory);
    } else {
      cudaFreeHost(memory);
    }
  }

  void CopyIn(void* device, const void* pinned, int64_t bytes) override {
    Copy(device, pinned, bytes, cudaMemcpyHostToDevice, "copying to the device");
  }
  void CopyOut(void* pinned, const void* device, int64_t bytes) override {
    Copy(pinned, device, bytes, cudaMemcpyDeviceToHost, "copying from the device");
  }
  void CopyWithin(void* to, const void* from, int64_t bytes) override {
    Copy(to, from, bytes, cudaMemcpyDeviceToDevice, "copying within the device");
  }
  void Synchronize() override { Check(cudaStreamSynchronize(stream_), "computing"); }

  void PrepareProducts(const DeviceMatrix& matrix) override {
    if (large_products_ != nullptr) large_products_->Reserve(matrix);
  }

  void Run(const ProductOp& op) override {
    if (large_products_ == nullptr || op.rows <= kFewRows) return RunOp(op, "starting a product");
    Use();
    large_products_->Run(op);
  }
  void Run(const NormOp& op) override { RunOp(op, "starting a norm"); }
  void Run(const PrepareOp& op) override { RunOp(op, "starting the first norms"); }
  void Run(const TurnOp& op) override { RunOp(op, "starting a rotation"); }
  void Run(const AttendOp& op) override { RunOp(op, "starting attention"); }
  void Run(const RankOp& op) override { RunOp(op, "starting to rank scores"); }

  int32_t Record(const std::function<void()>& work) override {
    Use();
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "recording");
    cudaGraph_t graph = nullptr;
    try {
      work();
    } catch (...) {
      // Or the stream would go on recording.
      cudaStreamEndCapture(stream_, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      cudaGetLastError();
      throw;
    }
    Check(cudaStreamEndCapture(stream_, &graph), "recording");
    cudaGraphExec_t recording = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&recording, graph, 0);
    cudaGraphDestroy(graph);
    Check(error, "making a graph of a recording");
    recordings_.push_back(recording);
    return static_cast<int32_t>(recordings_.size()) - 1;
  }

  void Replay(int32_t recording) override {
    Use();
    Check(cudaGraphLaunch(recordings_.at(static_cast<size_t>(recording)), stream_),
          "starting a graph");
  }

  void ForgetRecordings() override {
    Synchronize();
    for (const cudaGraphExec_t recording : std::exchange(recordings_, {}))
      cudaGraphExecDestroy(recording);
  }

 private:
  // The current device belongs to the thread, and a model may be loaded by another than its
  // engine's.
  void Use() { Check(cudaSetDevice(number_), "choosing the device"); }

  void Copy(void* to, const void* from, int64_t bytes, cudaMemcpyKind kind, const char* doing) {
    if (bytes == 0) return;
    Use();
    Check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream_), doing);
  }

  template <typename Op>
  void RunOp(const Op& op, const char* doing) {
    Use();
    Check(Enqueue(op, stream_), doing);
  }

  const int32_t number_;
  DeviceTraits traits_;
  cudaStream_t stream_ = nullptr;
  std::vector<cudaGraphExec_t> recordings_;
  std::unique_ptr<LargeProducts> large_products_;  // null without a library for them
};

}  // namespace

std::unique_ptr<Device> OpenDevice(int32_t number) { return std::make_unique<CudaDevice>(number); }

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
