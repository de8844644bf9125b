#include "server/model/compute_choice.h"

#include "absl/strings/str_cat.h"
#include "server/model/cpu_budget.h"
#include "server/model/packed_net.h"

namespace aerie {
namespace {

std::string ElementName(WeightElement element) {
  switch (element) {
    case WeightElement::kFloat32:
      return "float32";
    case WeightElement::kBFloat16:
      return "bfloat16";
    case WeightElement::kInt8:
      break;
  }
  return "int8";
}

WeightElement ElementOf(ComputeDType asked) {
  switch (asked) {
    case ComputeDType::kAuto:
    case ComputeDType::kFloat32:
    case ComputeDType::kFp8:  // refused before
      break;
    case ComputeDType::kBFloat16:
      return WeightElement::kBFloat16;
    case ComputeDType::kInt8:
      return WeightElement::kInt8;
  }
  return WeightElement::kFloat32;
}

// int8 is never picked unasked: it rounds what a checkpoint holds, if only by little.
void ChooseByCpu(const CpuTraits& cpu, ComputeChoice& choice) {
  if (choice.packed) {
    choice.element = WeightElement::kBFloat16;
    // Either way a step of one sequence waits for its weights alone.
    const bool multiplies = cpu.level == CpuLevel::kAvx512Bf16;
    choice.dtype.source = absl::StrCat(
        "auto: this CPU ", multiplies ? "multiplies it" : "reads it as fast as memory gives it",
        " (", CpuLevelName(cpu.level), "), and sums are float32");
  } else if (cpu.bfloat16_flag.has_value()) {
    choice.element = WeightElement::kBFloat16;
    choice.dtype.source = absl::StrCat("auto: this CPU multiplies it (", *cpu.bfloat16_flag, ")");
  } else {
    choice.dtype.source = "auto: this CPU has no bfloat16 products (avx512_bf16 or amx_bf16)";
  }
}

}  // namespace

CpuTraits ThisCpu() { return {BestCpuLevel(), BFloat16Flag()}; }

absl::StatusOr<ComputeChoice> ChooseCompute(const HeadSpec& spec, ComputeDType asked,
                                            const CpuTraits& cpu) {
  const bool does = PackedNet::Does(spec);
  const bool vectors = cpu.level != CpuLevel::kBaseline;
  const std::string kind(AttentionKindName(spec.attention.value).data(),
                         AttentionKindName(spec.attention.value).size());
  if (asked == ComputeDType::kInt8 && !does) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dtype is \"int8\" but the head has ", kind,
                     " attention, which only LibTorch computes; expected auto, float32 or "
                     "bfloat16 for it; give one of these"));
  }
  if (asked == ComputeDType::kFp8) {
    return absl::InvalidArgumentError(
        "--dtype is \"fp8\" but --device is \"cpu\", which has no products of fp8; expected auto, "
        "float32, bfloat16 or int8 for it; give one of these, or --device cuda:N");
  }
  ComputeChoice choice;
  // Nothing else does int8, and plain loops do it anywhere.
  choice.packed = does && (vectors || asked == ComputeDType::kInt8);
  choice.element = ElementOf(asked);
  choice.dtype.name = "compute_dtype";
  choice.dtype.source = "flag --dtype";
  if (asked == ComputeDType::kAuto) ChooseByCpu(cpu, choice);
  choice.dtype.value = ElementName(choice.element);
  choice.path_source = !does     ? absl::StrCat("auto: the head has ", kind, " attention")
                       : vectors ? absl::StrCat("auto: this CPU has ", CpuLevelName(cpu.level))
                                 : "auto: this CPU has neither AVX2 with FMA nor AVX-512";
  return choice;
}

}  // namespace aerie
