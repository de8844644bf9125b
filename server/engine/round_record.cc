#include "server/engine/round_record.h"

#include "common/check.h"

namespace aerie {

RoundRecord RecordWithoutPass(absl::StatusCode outcome, const DraftCall& call, absl::Time now) {
  RoundRecord record;
  record.outcome = outcome;
  record.copy_in = call.copy_in;
  record.total = now - call.arrival;
  record.queue_wait = record.total - call.copy_in;
  return record;
}

std::optional<SkipReason> SkipReasonOf(NoDraftReason reason) {
  switch (reason) {
    case NoDraftReason::kNone:
      return std::nullopt;
    case NoDraftReason::kNotAsked:
      return SkipReason::kNotAsked;
    case NoDraftReason::kContextLimit:
      return SkipReason::kContextLimit;
    case NoDraftReason::kDeadline:
      return SkipReason::kDeadline;
    case NoDraftReason::kNotWorthwhile:
      return SkipReason::kNotWorthwhile;
  }
  AERIE_CHECK(false) << "no such reason";
}

ProposalMethod MethodOf(const SessionOptions& options) {
  if (options.temperature > 0) {
    return options.tree.has_value() ? ProposalMethod::kSampledTree : ProposalMethod::kSampledChain;
  }
  return options.tree.has_value() ? ProposalMethod::kGreedyTree : ProposalMethod::kGreedyChain;
}

}  // namespace aerie
