#include "client/draft_call.h"

#include "common/rpc/codec.h"
#include "common/rpc/session_codec.h"
#include "common/rpc/tree_codec.h"
#include "common/status_macros.h"

namespace aerie {

absl::Status ReadAnswer(const v1::DraftResponse& answer, DraftOutcome* outcome) {
  AERIE_ASSIGN_OR_RETURN(outcome->tree, rpc::DecodeDraftTree(answer.tree()));
  const v1::DraftTree& tree = answer.tree();
  outcome->positions.assign(tree.positions().begin(), tree.positions().end());
  outcome->ancestor_mask = tree.ancestor_mask();
  outcome->links.first_child.assign(tree.first_child().begin(), tree.first_child().end());
  outcome->links.next_sibling.assign(tree.next_sibling().begin(), tree.next_sibling().end());
  outcome->k_choice.reset();
  if (answer.has_k_choice()) outcome->k_choice = rpc::DecodeKChoice(answer.k_choice());
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
