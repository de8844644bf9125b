#include "server/verify/verify_result.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace aerie {

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kVerified:
      return "verified";
    case Verdict::kContradicted:
      return "contradicted";
    case Verdict::kUndecided:
      return "undecided";
    case Verdict::kEquivalent:
      return "equivalent";
  }
  return "";
}

int ExitCode(Verdict verdict) {
  switch (verdict) {
    case Verdict::kVerified:
      return 0;
    case Verdict::kContradicted:
      return 3;
    case Verdict::kUndecided:
      return 4;
    case Verdict::kEquivalent:
      return 5;
  }
  return 2;
}

absl::string_view StandingName(Standing standing) {
  switch (standing) {
    case Standing::kReference:
      return "reference";
    case Standing::kBetter:
      return "better";
    case Standing::kEquivalent:
      return "equivalent";
    case Standing::kOpen:
      return "open";
    case Standing::kExcluded:
      return "excluded";
  }
  return "";
}

absl::string_view LabelVerdictName(LabelVerdict verdict) {
  switch (verdict) {
    case LabelVerdict::kSupported:
      return "supported";
    case LabelVerdict::kContradicted:
      return "contradicted";
    case LabelVerdict::kUntested:
      return "untested";
  }
  return "";
}

std::string WiringView::Name() const {
  std::string name = absl::StrJoin(tensors, " | ");
  if (shift != 0) absl::StrAppend(&name, absl::StrFormat(", states shifted by %+d", shift));
  return name;
}

}  // namespace aerie
