// The drafter on LibTorch, seen from outside: a checkpoint goes in, a DraftModel comes out.
//
// LibTorch stays behind this header. It throws; nothing that is returned here does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/checkpoint/checkpoint.h"
#include "server/engine/draft_model.h"

namespace aerie {

// What the weights are kept in, and the KV: float32 with float32, else bfloat16. Norms, rotation
// and softmax are float32 in all, and so is everything between the weights where our own kernels
// compute.
enum class ComputeDType {
  kAuto,  // bfloat16 where that is quick on this CPU, else float32; which, and why, the spec tells
  kFloat32,
  kBFloat16,
  kInt8,  // one scale for each row of a matrix; but for fc, which is bfloat16; own kernels only
  kFp8,   // float8_e4m3fn, otherwise like kInt8; on CUDA devices only
};

struct ModelOptions {
  std::string device = "cpu";  // or "cuda", "cuda:N": with weights, KV and arithmetic there
  ComputeDType dtype = ComputeDType::kAuto;
  int32_t threads = 0;  // of one pass, 1..1024; 0: what affinity, quota and size make worth while
  int64_t kv_memory_bytes = int64_t{1} << 30;  // of the store of draft KV; > 0
  int32_t kv_page_rows = 16;                   // 1..1024

  // INVALID_ARGUMENT that names the flag and the value.
  absl::Status Validate() const;
};

// Converts the weights, runs one row through and checks what comes out. The checkpoint is not
// needed afterwards, but its files stay mapped for the embedding: they must not be changed in place
// while the model lives. Peak memory is that of the weights and a few MiB. The number of threads is
// the model's own with our kernels; with LibTorch it is the process's, and the model loaded last
// decides. INVALID_ARGUMENT: options, also when the KV memory holds too few pages of this head, or
// when the head's attention is not done in the dtype, or on the device, that was asked for.
// RESOURCE_EXHAUSTED: no memory for the weights. FAILED_PRECONDITION: the weights give no finite
// numbers, or there is no such device. INTERNAL: LibTorch or the device failed.
absl::StatusOr<std::unique_ptr<DraftModel>> LoadEagle3Model(const Checkpoint& checkpoint,
                                                            const ModelOptions& options);

// LibTorch's version, for the build info: "2.11.0".
std::string LibTorchVersion();

}  // namespace aerie
