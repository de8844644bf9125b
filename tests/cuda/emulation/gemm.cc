// The library of large products, as plain loops.
#include "server/kernels/cuda/gemm.cuh"

#include "common/float16.h"
#include "server/kernels/cuda/cuda_check.cuh"
#include "tests/cuda/emulation/cuda_runtime.h"

namespace aerie_emulation {
namespace {

bool has_gemm = true;
int64_t gemm_count = 0;

}  // namespace

void SetGemm(bool there) { has_gemm = there; }
int64_t GemmCount() { return gemm_count; }

}  // namespace aerie_emulation

namespace aerie {
namespace emulated {
namespace {

float At(const void* numbers, bool halves, int64_t i) {
  return halves ? Bf16ToFloat(static_cast<const uint16_t*>(numbers)[i])
                : static_cast<const float*>(numbers)[i];
}

void Multiply(const GemmOp& op) {
  ++aerie_emulation::gemm_count;
  for (int64_t row = 0; row < op.rows; ++row) {
    for (int64_t channel = 0; channel < op.channels; ++channel) {
      float sum = 0.0f;
      for (int64_t i = 0; i < op.inputs; ++i)
        sum += At(op.in, op.halves, row * op.inputs + i) *
               At(op.weights, op.halves, channel * op.inputs + i);
      op.out[row * op.channels + channel] = sum;
    }
  }
}

class LoopGemm final : public Gemm {
 public:
  explicit LoopGemm(cudaStream_t stream) : stream_(stream) {}
  const std::string& name() const override { return name_; }
  void Run(const GemmOp& op) override {
    Check(aerie_emulation::LaunchWork(stream_, [op] { Multiply(op); }), "starting a product");
  }

 private:
  cudaStream_t stream_;
  std::string name_ = "plain loops";
};

}  // namespace

std::unique_ptr<Gemm> OpenGemm(cudaStream_t stream, std::string& why) {
  if (aerie_emulation::has_gemm) return std::make_unique<LoopGemm>(stream);
  why = "there is no library";
  return nullptr;
}

}  // namespace emulated
}  // namespace aerie
