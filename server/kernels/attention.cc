#include "server/kernels/attention.h"

#include "server/kernels/attention_loops.h"

namespace aerie {
namespace {

void AttendBaseline(const AttentionArgs& args, AttentionScratch& scratch) {
  AttendInElement<kBaselineWidth>(args, scratch);
}

AERIE_TARGET_AVX2 void AttendAvx2(const AttentionArgs& args, AttentionScratch& scratch) {
  AttendInElement<kAvx2Width>(args, scratch);
}

AERIE_TARGET_AVX512 void AttendAvx512(const AttentionArgs& args, AttentionScratch& scratch) {
  AttendInElement<kAvx512Width>(args, scratch);
}

}  // namespace

void AttendPages(const AttentionArgs& args, AttentionScratch& scratch, CpuLevel level) {
  switch (level) {
    case CpuLevel::kBaseline:
      return AttendBaseline(args, scratch);
    case CpuLevel::kAvx2:
      return AttendAvx2(args, scratch);
    case CpuLevel::kAvx512:
    case CpuLevel::kAvx512Vnni:
      return AttendAvx512(args, scratch);
    case CpuLevel::kAvx512Bf16:
#if defined(__x86_64__)
      if (args.kv.element == KvElement::kBFloat16) return AttendBf16(args, scratch);
#endif
      return AttendAvx512(args, scratch);
  }
}

}  // namespace aerie
