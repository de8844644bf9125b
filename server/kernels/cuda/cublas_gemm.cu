// Large products by cuBLAS, which is looked for when a device is opened and not linked: the library
// and what it needs are 600 MB, and a program for the GPU must start, and draft, without them.
#include <cublas_v2.h>
#include <dlfcn.h>

#include "server/kernels/cuda/device.h"
#include "server/kernels/cuda/gemm.cuh"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {
namespace {

// Where the loader looks by itself (the program's own library folder included), then where the
// toolkit installs.
constexpr const char* kPlaces[] = {"libcublas.so.13", "/usr/local/cuda/lib64/libcublas.so.13"};

struct Functions {
  cublasStatus_t (*create)(cublasHandle_t*);
  cublasStatus_t (*destroy)(cublasHandle_t);
  cublasStatus_t (*set_stream)(cublasHandle_t, cudaStream_t);
  cublasStatus_t (*get_version)(cublasHandle_t, int*);
  const char* (*status_string)(cublasStatus_t);
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                         const void*, const void*, cudaDataType, int, const void*, cudaDataType,
                         int, const void*, void*, cudaDataType, int, cublasComputeType_t,
                         cublasGemmAlgo_t);
};

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// The library stays loaded: what it leaves in the process cannot be taken out again.
bool FindCublas(Functions& functions, std::string& why) {
  void* library = nullptr;
  for (const char* const place : kPlaces) {
    library = dlopen(place, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    if (why.empty()) why = dlerror();  // of the place that has no folder
  }
  if (library == nullptr) return false;
  const bool found = Find(library, "cublasCreate_v2", functions.create) &&
                     Find(library, "cublasDestroy_v2", functions.destroy) &&
                     Find(library, "cublasSetStream_v2", functions.set_stream) &&
                     Find(library, "cublasGetVersion_v2", functions.get_version) &&
                     Find(library, "cublasGetStatusString", functions.status_string) &&
                     Find(library, "cublasGemmEx", functions.gemm);
  why = found ? "" : dlerror();
  return found;
}

class CublasGemm final : public Gemm {
 public:
  CublasGemm(const Functions& functions, cudaStream_t stream) : functions_(functions) {
    Check(functions_.create(&handle_), "starting");
    Check(functions_.set_stream(handle_, stream), "taking a stream");
    int version = 0;
    Check(functions_.get_version(handle_, &version), "telling its version");
    name_ = "cuBLAS " + std::to_string(version / 10000) + "." +
            std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
  }
  ~CublasGemm() override { functions_.destroy(handle_); }

  const std::string& name() const override { return name_; }

  // cuBLAS counts by columns: its matrices are ours turned round, and so is the product.
  void Run(const GemmOp& op) override {
    const cudaDataType element = op.halves ? CUDA_R_16BF : CUDA_R_32F;
    const float one = 1.0f, zero = 0.0f;
    Check(functions_.gemm(handle_, CUBLAS_OP_T, CUBLAS_OP_N, op.channels, op.rows, op.inputs, &one,
                          op.weights, element, op.inputs, op.in, element, op.inputs, &zero, op.out,
                          CUDA_R_32F, op.channels, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "starting a product");
  }

 private:
  void Check(cublasStatus_t status, const char* doing) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw DeviceError(status == CUBLAS_STATUS_ALLOC_FAILED ? DeviceError::Kind::kMemory
                                                           : DeviceError::Kind::kFailed,
                      std::string("cuBLAS failed while ") + doing + ": " +
                          functions_.status_string(status) +
                          "; expected the cuBLAS of CUDA 13 and some memory of the device; look at "
                          "nvidia-smi, and install the library again");
  }

  const Functions functions_;
  cublasHandle_t handle_ = nullptr;
  std::string name_;
};

}  // namespace

std::unique_ptr<Gemm> OpenGemm(cudaStream_t stream, std::string& why) {
  Functions functions = {};
  if (!FindCublas(functions, why)) return nullptr;
  return std::make_unique<CublasGemm>(functions, stream);
}

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
