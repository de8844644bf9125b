// Which vector instructions a kernel may use. Programs are built for any x86-64, or any other
// processor; what more there is, is found when they run.
#pragma once

// Every function that works on vectors is inlined into one function a level, which alone says what
// it is compiled for: a vector must never cross a call, since levels pass it differently.
#define AERIE_INLINE inline __attribute__((always_inline))

#if defined(__x86_64__)
#define AERIE_TARGET_AVX2 __attribute__((target("avx2,fma")))
#define AERIE_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#else  // never run, but still compiled
#define AERIE_TARGET_AVX2
#define AERIE_TARGET_AVX512
#endif

namespace aerie {

// Each has the instructions of those before it. kAvx512Vnni computes what kAvx512 does, to the bit,
// and is quicker at products of int8. kAvx512Bf16 multiplies bfloat16 with bfloat16: where weights,
// or keys and values, are bfloat16, it rounds what they are multiplied with. A kernel that has
// neither is that of kAvx512.
enum class CpuLevel { kBaseline, kAvx2, kAvx512, kAvx512Vnni, kAvx512Bf16 };

// Floats of one vector.
inline constexpr int kBaselineWidth = 4, kAvx2Width = 8, kAvx512Width = 16;

// The best that this machine runs.
CpuLevel BestCpuLevel();

// For people: "AVX-512".
const char* CpuLevelName(CpuLevel level);

}  // namespace aerie
