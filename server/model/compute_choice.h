// Which net computes a head, and in which type: from what was asked for, what the head is, and what
// the CPU does well.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/setting.h"
#include "server/checkpoint/head_spec.h"
#include "server/kernels/cpu_level.h"
#include "server/kernels/cuda/ops.h"
#include "server/kernels/packed_matrix.h"
#include "server/model/eagle3_model.h"

namespace aerie {

// Of the CPU, what the choice depends on.
struct CpuTraits {
  CpuLevel level = CpuLevel::kBaseline;
  // The flag that promises bfloat16 products to LibTorch; nullopt without one.
  std::optional<std::string> bfloat16_flag;
};
CpuTraits ThisCpu();

struct ComputeChoice {
  bool packed = false;  // own kernels; else LibTorch
  WeightElement element = WeightElement::kFloat32;
  DeviceElement device_element = DeviceElement::kFloat32;  // on a CUDA device, in its place
  Setting dtype;                                           // compute_dtype with its source
  std::string path_source;                                 // why these kernels
};

// On the CPU. INVALID_ARGUMENT: `asked` is kFp8, or it is kInt8 and the head is one that only
// LibTorch does.
absl::StatusOr<ComputeChoice> ChooseCompute(const HeadSpec& spec, ComputeDType asked,
                                            const CpuTraits& cpu);

}  // namespace aerie
