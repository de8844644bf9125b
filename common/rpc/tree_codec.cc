#include "common/rpc/tree_codec.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rpc/codec.h"
#include "common/status_macros.h"

namespace aerie::rpc {
namespace {

constexpr uint32_t kInt32Max = std::numeric_limits<int32_t>::max();

absl::Status DoesNotMatch(absl::string_view what) {
  return absl::InternalError(absl::StrCat("the proposal ", what,
                                          "; expected what its parents say; the server and this "
                                          "client do not match, compare versions"));
}

// One that does not fit becomes -1, which Validate() refuses.
int32_t DecodeNode(uint32_t node) { return node > kInt32Max ? -1 : static_cast<int32_t>(node); }

absl::StatusOr<std::vector<int32_t>> DecodeIds(
    const google::protobuf::RepeatedField<uint32_t>& ids) {
  std::vector<int32_t> out;
  out.reserve(static_cast<size_t>(ids.size()));
  for (const uint32_t id : ids) {
    if (id > kInt32Max) return DoesNotMatch(absl::StrCat("holds token id ", id));
    out.push_back(static_cast<int32_t>(id));
  }
  return out;
}

absl::Status CheckPositions(const DraftTree& tree,
                            const google::protobuf::RepeatedField<uint32_t>& positions) {
  if (positions.empty()) return absl::OkStatus();
  if (positions.size() != tree.size()) {
    return DoesNotMatch(
        absl::StrCat("has ", tree.size(), " tokens and ", positions.size(), " positions"));
  }
  const std::vector<int32_t> depths = tree.Depths();
  const int64_t root = int64_t{positions[0]} - depths[0];
  for (int i = 0; i < tree.size(); ++i) {
    if (int64_t{positions[i]} == root + depths[static_cast<size_t>(i)]) continue;
    return DoesNotMatch(absl::StrCat("puts node ", i + 1, " at position ", positions[i],
                                     " and its root at ", root));
  }
  return absl::OkStatus();
}

absl::Status CheckExtras(const DraftTree& tree, const v1::DraftTree& message) {
  // The size first: of a proposal as large as a message may be, the mask that it should have would
  // not fit into memory.
  const size_t nodes = tree.tokens.size() + 1;
  if (!message.ancestor_mask().empty() &&
      (message.ancestor_mask().size() != nodes * ((nodes + 7) / 8) ||
       message.ancestor_mask() != tree.AncestorMask())) {
    return DoesNotMatch("has another ancestor mask");
  }
  if (message.first_child().empty() && message.next_sibling().empty()) return absl::OkStatus();
  const TreeLinks links = tree.Links();
  const auto equal = [](const std::vector<int32_t>& ours, const auto& theirs) {
    return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end());
  };
  if (!equal(links.first_child, message.first_child()) ||
      !equal(links.next_sibling, message.next_sibling())) {
    return DoesNotMatch("has other links");
  }
  return absl::OkStatus();
}

}  // namespace

void EncodeDraftTree(const DraftTree& tree, int64_t root_position, const TreeExtras& extras,
                     v1::DraftTree* out) {
  EncodeTokens(tree.tokens, out->mutable_token_ids());
  EncodeTokens(tree.parents, out->mutable_parents());
  out->mutable_log_probs()->Assign(tree.log_probs.begin(), tree.log_probs.end());
  for (const int32_t depth : tree.Depths()) {
    out->add_positions(static_cast<uint32_t>(root_position + depth));
  }
  out->mutable_chosen_probs()->Assign(tree.chosen_probs.begin(), tree.chosen_probs.end());
  for (const ProposalDistribution& distribution : tree.distributions) {
    v1::ProposalDistribution* message = out->add_distributions();
    message->set_node(static_cast<uint32_t>(distribution.node));
    EncodeTokens(distribution.tokens, message->mutable_token_ids());
    message->mutable_probs()->Assign(distribution.probs.begin(), distribution.probs.end());
  }
  if (extras.ancestor_mask) out->set_ancestor_mask(tree.AncestorMask());
  if (extras.links) {
    const TreeLinks links = tree.Links();
    out->mutable_first_child()->Assign(links.first_child.begin(), links.first_child.end());
    out->mutable_next_sibling()->Assign(links.next_sibling.begin(), links.next_sibling.end());
  }
}

absl::StatusOr<DraftTree> DecodeDraftTree(const v1::DraftTree& tree) {
  DraftTree out;
  AERIE_ASSIGN_OR_RETURN(out.tokens, DecodeIds(tree.token_ids()));
  for (const uint32_t parent : tree.parents()) out.parents.push_back(DecodeNode(parent));
  out.log_probs.assign(tree.log_probs().begin(), tree.log_probs().end());
  out.chosen_probs.assign(tree.chosen_probs().begin(), tree.chosen_probs().end());
  for (const v1::ProposalDistribution& message : tree.distributions()) {
    ProposalDistribution distribution;
    distribution.node = DecodeNode(message.node());
    AERIE_ASSIGN_OR_RETURN(distribution.tokens, DecodeIds(message.token_ids()));
    distribution.probs.assign(message.probs().begin(), message.probs().end());
    out.distributions.push_back(std::move(distribution));
  }
  AERIE_RETURN_IF_ERROR(out.Validate());
  AERIE_RETURN_IF_ERROR(CheckPositions(out, tree.positions()));
  AERIE_RETURN_IF_ERROR(CheckExtras(out, tree));
  return out;
}

}  // namespace aerie::rpc
