#include "common/session_options.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/error_detail.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return WithReason(absl::InvalidArgumentError(absl::StrCat(parts...)), kReasonOptionsInvalid);
}

absl::Status CheckSampling(const SessionOptions& options) {
  if (!(options.temperature >= 0.0f) || std::isinf(options.temperature)) {
    return Invalid("options.sampling.temperature is ", options.temperature,
                   "; expected a finite number above 0; leave sampling unset for greedy drafts");
  }
  if (options.top_m < 0) {
    return Invalid("options.sampling.top_m is ", options.top_m,
                   "; expected 1 or more, or 0 for the server's default; leave it out");
  }
  if (options.temperature > 0.0f) return absl::OkStatus();
  if (options.top_m != 0) {
    return Invalid("options.sampling.top_m is ", options.top_m, " without a temperature; expected ",
                   "options.sampling.temperature above 0 with it; set both or neither");
  }
  if (options.probs != ProposalProbs::kNone) {
    return Invalid("options.sampling.proposal_probs is set without a temperature; expected ",
                   "options.sampling.temperature above 0 with it; set both or neither");
  }
  return absl::OkStatus();
}

absl::Status CheckTree(const SessionOptions& options) {
  const TreeShape& tree = *options.tree;
  if (tree.depth < 1) {
    return Invalid("options.tree.depth is ", tree.depth,
                   "; expected 1 or more levels; leave tree unset for a chain");
  }
  if (tree.top_k < 2) {
    return Invalid("options.tree.top_k is ", tree.top_k,
                   "; expected 2 or more, since a tree of width 1 is a chain; leave tree unset");
  }
  if (tree.total_tokens < tree.depth) {
    return Invalid("options.tree.total_tokens is ", tree.total_tokens,
                   " but options.tree.depth is ", tree.depth,
                   "; expected at least a token for each level; raise the one or lower the other");
  }
  // A double: the numbers are a client's, and their product may leave every integer type.
  const double depth = tree.depth;
  const double top_k = tree.top_k;
  const bool sampled = options.temperature > 0.0f;
  const double most = sampled ? depth * top_k : top_k + (depth - 1.0) * top_k * top_k;
  if (tree.total_tokens > most) {
    return Invalid("options.tree.total_tokens is ", tree.total_tokens, " but depth ", tree.depth,
                   " and top_k ", tree.top_k, sampled ? " with sampling" : "", " make at most ",
                   most, " nodes; expected no more than these; lower total_tokens, or raise depth ",
                   "or top_k");
  }
  if (options.max_k > 0 && tree.total_tokens > options.max_k) {
    return Invalid("options.tree.total_tokens is ", tree.total_tokens, " but options.max_k is ",
                   options.max_k, "; expected at most max_k tokens; raise max_k or lower ",
                   "total_tokens");
  }
  if (options.top_m > 0 && tree.top_k > options.top_m) {
    return Invalid("options.tree.top_k is ", tree.top_k, " but options.sampling.top_m is ",
                   options.top_m, "; expected as many tokens to draw from as children are drawn ",
                   "without replacement; raise top_m or lower top_k");
  }
  if (options.adaptive_k) {
    return Invalid("options.adaptive_k and options.tree are both set; expected one of them, since ",
                   "adaptive k is for chains; leave the other out");
  }
  return absl::OkStatus();
}

absl::Status CheckBeginning(const SessionOptions& options) {
  if (!options.fork_of.empty() && options.start != 0) {
    return Invalid("fork is set and start is ", options.start, "; expected at most one of them: ",
                   "a fork begins where its session does; leave start out");
  }
  if (options.fork_of.empty() && options.fork_length != 0) {
    return Invalid("fork.length is ", options.fork_length, " without a fork.session_id; expected ",
                   "the session whose rows these are; name it, or leave fork unset");
  }
  if (options.start < 0 || options.fork_length < 0) {
    return Invalid("start is ", options.start, " and fork.length ", options.fork_length,
                   "; expected row indices from 0 on; correct the negative one");
  }
  if (options.client.size() > kMaxClientBytes) {
    return Invalid("client has ", options.client.size(), " bytes; expected at most ",
                   kMaxClientBytes, "; shorten the name");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SessionOptions::Validate() const {
  if (max_k < 0) {
    return Invalid("options.max_k is ", max_k,
                   "; expected 1 or more, or 0 for the server's limit; leave it out");
  }
  AERIE_RETURN_IF_ERROR(CheckSampling(*this));
  if (tree.has_value()) AERIE_RETURN_IF_ERROR(CheckTree(*this));
  return CheckBeginning(*this);
}

}  // namespace aerie
