// Which device a drafter runs on, and whether this program and this machine have it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/checkpoint/head_spec.h"
#include "server/kernels/cuda/device.h"
#include "server/model/compute_choice.h"

namespace aerie {

// The N of "cuda:N"; "cuda" is the first. nullopt for "cpu". INVALID_ARGUMENT for anything else.
absl::StatusOr<std::optional<int32_t>> CudaDeviceNumber(const std::string& device);

// FAILED_PRECONDITION when the program was built without CUDA, when the machine has no such device,
// or none that the kernels were built for.
absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int32_t number);

// The dtype of a head on a device. INVALID_ARGUMENT when the head is one that only LibTorch does.
absl::StatusOr<ComputeChoice> ChooseCudaCompute(const HeadSpec& spec, ComputeDType asked);

}  // namespace aerie
