#include "server/kernels/cpu_level.h"

namespace aerie {
namespace {

CpuLevel Detect() {
#if defined(__x86_64__)
  // Both ask the system as well: a processor's registers are of no use when they are not saved.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    if (!__builtin_cpu_supports("avx512vnni")) return CpuLevel::kAvx512;
    return __builtin_cpu_supports("avx512bf16") ? CpuLevel::kAvx512Bf16 : CpuLevel::kAvx512Vnni;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return CpuLevel::kAvx2;
#endif
  return CpuLevel::kBaseline;
}

}  // namespace

CpuLevel BestCpuLevel() {
  static const CpuLevel level = Detect();
  return level;
}

const char* CpuLevelName(CpuLevel level) {
  switch (level) {
    case CpuLevel::kBaseline:
      break;
    case CpuLevel::kAvx2:
      return "AVX2";
    case CpuLevel::kAvx512:
      return "AVX-512";
    case CpuLevel::kAvx512Vnni:
      return "AVX-512 VNNI";
    case CpuLevel::kAvx512Bf16:
      return "AVX-512 BF16";
  }
  return "no vectors";
}

}  // namespace aerie
