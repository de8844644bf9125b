#include "server/model/cuda_choice.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/model/cuda_net.h"

namespace aerie {

absl::StatusOr<std::optional<int32_t>> CudaDeviceNumber(const std::string& device) {
  if (device == "cpu") return std::nullopt;
  if (device == "cuda") return 0;
  absl::string_view number = device;
  int32_t parsed = 0;
  if (absl::ConsumePrefix(&number, "cuda:") && absl::SimpleAtoi(number, &parsed) && parsed >= 0)
    return parsed;
  return absl::InvalidArgumentError(absl::StrCat(
      "--device is \"", device,
      "\"; expected \"cpu\", \"cuda\" or \"cuda:N\"; name one of these, N being a number of "
      "nvidia-smi"));
}

absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(int32_t number) {
#if AERIE_WITH_CUDA
  try {
    return cuda::OpenDevice(number);
  } catch (const DeviceError& error) {
    return absl::FailedPreconditionError(error.what());
  }
#else
  return absl::FailedPreconditionError(absl::StrCat(
      "--device is \"cuda:", number,
      "\" but this program was built without CUDA; expected a build of the preset cuda; build it "
      "with cmake --preset cuda, or use --device cpu"));
#endif
}

absl::StatusOr<ComputeChoice> ChooseCudaCompute(const HeadSpec& spec, ComputeDType asked) {
  if (!CudaNet::Does(spec)) {
    const absl::string_view kind(AttentionKindName(spec.attention.value).data(),
                                 AttentionKindName(spec.attention.value).size());
    return absl::InvalidArgumentError(
        absl::StrCat("the head has ", kind, " attention with heads of ", spec.head_dim.value,
                     " channels, which no kernel for CUDA computes; expected grouped-query "
                     "attention with at most ",
                     kMaxHeadDim, "; use --device cpu"));
  }
  ComputeChoice choice;
  choice.packed = true;
  choice.dtype = {"compute_dtype", "bfloat16", "flag --dtype"};
  choice.device_element = DeviceElement::kBFloat16;
  choice.path_source = "flag --device";
  switch (asked) {
    case ComputeDType::kAuto:
      choice.dtype.source = "auto: half the bytes of float32 for each step, and sums are float32";
      break;
    case ComputeDType::kBFloat16:
      break;
    case ComputeDType::kFloat32:
      choice.device_element = DeviceElement::kFloat32;
      choice.dtype.value = "float32";
      break;
    case ComputeDType::kInt8:
      choice.device_element = DeviceElement::kInt8;
      choice.dtype.value = "int8";
      break;
    case ComputeDType::kFp8:
      choice.device_element = DeviceElement::kFp8;
      choice.dtype.value = "fp8";
      break;
  }
  return choice;
}

}  // namespace aerie
