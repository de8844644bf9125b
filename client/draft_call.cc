#include "client/draft_call.h"

#include "common/rpc/codec.h"
#include "common/status_macros.h"

namespace aerie {

absl::Status ReadAnswer(const v1::DraftResponse& answer, DraftOutcome* outcome) {
  AERIE_ASSIGN_OR_RETURN(outcome->tree, rpc::DecodeDraftTree(answer.tree()));
  outcome->length = answer.length();
  outcome->no_draft_reason = answer.no_draft_reason();
  outcome->method = answer.method();
  // Of several messages only the first one with tokens judges the last proposal.
  if (answer.has_accepted() && !outcome->accepted.has_value()) {
    outcome->accepted = static_cast<int32_t>(answer.accepted());
  }
  const v1::DraftTiming& timing = answer.timing();
  outcome->timing = {rpc::DecodeDuration(timing.queue()), rpc::DecodeDuration(timing.extend()),
                     rpc::DecodeDuration(timing.step()), rpc::DecodeDuration(timing.total())};
  return absl::OkStatus();
}

}  // namespace aerie
