#include "common/rpc/session_codec.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/status_macros.h"

namespace aerie::rpc {
namespace {

constexpr uint32_t kInt32Max = std::numeric_limits<int32_t>::max();

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return WithReason(absl::InvalidArgumentError(absl::StrCat(parts...)), kReasonOptionsInvalid);
}

v1::ProposalProbs EncodeProposalProbs(ProposalProbs probs) {
  switch (probs) {
    case ProposalProbs::kNone:
      return v1::PROPOSAL_PROBS_UNSPECIFIED;
    case ProposalProbs::kChosen:
      return v1::PROPOSAL_PROBS_CHOSEN;
    case ProposalProbs::kTopM:
      return v1::PROPOSAL_PROBS_TOP_M;
  }
  return v1::PROPOSAL_PROBS_UNSPECIFIED;
}

absl::StatusOr<ProposalProbs> DecodeProposalProbs(v1::ProposalProbs probs) {
  switch (probs) {
    case v1::PROPOSAL_PROBS_UNSPECIFIED:
      return ProposalProbs::kNone;
    case v1::PROPOSAL_PROBS_CHOSEN:
      return ProposalProbs::kChosen;
    case v1::PROPOSAL_PROBS_TOP_M:
      return ProposalProbs::kTopM;
    default:
      return Invalid("options.sampling.proposal_probs is ", static_cast<int>(probs),
                     "; expected PROPOSAL_PROBS_UNSPECIFIED, _CHOSEN or _TOP_M; name one of them");
  }
}

absl::StatusOr<int32_t> DecodeInt32(uint32_t value, const char* field) {
  if (value <= kInt32Max) return static_cast<int32_t>(value);
  return Invalid(field, " is ", value, "; expected at most ", kInt32Max, "; give a smaller number");
}

absl::Status DecodeTree(const v1::TreeShape& tree, SessionOptions* out) {
  TreeShape& shape = out->tree.emplace();
  AERIE_ASSIGN_OR_RETURN(shape.depth, DecodeInt32(tree.depth(), "options.tree.depth"));
  AERIE_ASSIGN_OR_RETURN(shape.top_k, DecodeInt32(tree.top_k(), "options.tree.top_k"));
  AERIE_ASSIGN_OR_RETURN(shape.total_tokens,
                         DecodeInt32(tree.total_tokens(), "options.tree.total_tokens"));
  return absl::OkStatus();
}

absl::Status DecodeSampling(const v1::Sampling& sampling, SessionOptions* out) {
  if (sampling.temperature() == 0.0f) {
    return Invalid("options.sampling.temperature is 0; expected above 0; leave sampling unset for ",
                   "greedy drafts");
  }
  out->temperature = sampling.temperature();
  AERIE_ASSIGN_OR_RETURN(out->top_m, DecodeInt32(sampling.top_m(), "options.sampling.top_m"));
  out->seed = sampling.seed();
  AERIE_ASSIGN_OR_RETURN(out->probs, DecodeProposalProbs(sampling.proposal_probs()));
  return absl::OkStatus();
}

// Without the check of the whole.
absl::StatusOr<SessionOptions> ReadSessionOptions(const v1::SessionOptions& options) {
  SessionOptions out;
  // More than a server gives is no contradiction: it says in its answer what it gives.
  out.max_k = static_cast<int32_t>(std::min(options.max_k(), kInt32Max));
  if (options.has_tree()) AERIE_RETURN_IF_ERROR(DecodeTree(options.tree(), &out));
  if (options.has_sampling()) AERIE_RETURN_IF_ERROR(DecodeSampling(options.sampling(), &out));
  out.extras = {options.extras().ancestor_mask(), options.extras().links()};
  out.adaptive_k = options.adaptive_k();
  out.acceptance_detail = options.acceptance_detail();
  return out;
}

}  // namespace

void EncodeSessionOptions(const SessionOptions& options, v1::SessionOptions* out) {
  if (options.max_k != 0) out->set_max_k(static_cast<uint32_t>(options.max_k));
  if (options.tree.has_value()) {
    v1::TreeShape* tree = out->mutable_tree();
    tree->set_depth(static_cast<uint32_t>(options.tree->depth));
    tree->set_top_k(static_cast<uint32_t>(options.tree->top_k));
    tree->set_total_tokens(static_cast<uint32_t>(options.tree->total_tokens));
  }
  if (options.temperature != 0.0f) {
    v1::Sampling* sampling = out->mutable_sampling();
    sampling->set_temperature(options.temperature);
    sampling->set_top_m(static_cast<uint32_t>(options.top_m));
    sampling->set_seed(options.seed);
    sampling->set_proposal_probs(EncodeProposalProbs(options.probs));
  }
  if (options.extras != TreeExtras()) {
    out->mutable_extras()->set_ancestor_mask(options.extras.ancestor_mask);
    out->mutable_extras()->set_links(options.extras.links);
  }
  out->set_adaptive_k(options.adaptive_k);
  out->set_acceptance_detail(options.acceptance_detail);
}

absl::StatusOr<SessionOptions> DecodeSessionOptions(const v1::SessionOptions& options) {
  AERIE_ASSIGN_OR_RETURN(SessionOptions out, ReadSessionOptions(options));
  AERIE_RETURN_IF_ERROR(out.Validate());
  return out;
}

void EncodeOpening(const SessionOptions& options, v1::OpenSessionRequest* out) {
  EncodeSessionOptions(options, out->mutable_options());
  if (!options.fork_of.empty()) {
    out->mutable_fork()->set_session_id(options.fork_of);
    out->mutable_fork()->set_length(static_cast<uint32_t>(options.fork_length));
  }
  out->set_start(static_cast<uint32_t>(options.start));
  out->set_client(options.client);
  out->set_traceparent(options.traceparent);
}

absl::StatusOr<SessionOptions> DecodeOpening(const v1::OpenSessionRequest& request) {
  AERIE_ASSIGN_OR_RETURN(SessionOptions out, ReadSessionOptions(request.options()));
  if (request.has_fork()) {
    if (request.fork().session_id().empty()) {
      return Invalid("fork.session_id is empty; expected the id of an open session; name it, or ",
                     "leave fork unset");
    }
    out.fork_of = request.fork().session_id();
    out.fork_length = request.fork().length();
  }
  out.start = request.start();
  out.client = request.client();
  out.traceparent = request.traceparent();
  AERIE_RETURN_IF_ERROR(out.Validate());
  return out;
}

void EncodeVerifyCost(const VerifyCost& cost, v1::VerifyCost* out) {
  EncodeDuration(cost.time, out->mutable_time());
  out->set_draft_tokens(static_cast<uint32_t>(cost.draft_tokens));
}

absl::StatusOr<VerifyCost> DecodeVerifyCost(const v1::VerifyCost& cost) {
  VerifyCost out;
  out.time = DecodeDuration(cost.time());
  if (out.time <= absl::ZeroDuration()) {
    return WithReason(absl::InvalidArgumentError(absl::StrCat(
                          "verify_cost.time is ", absl::FormatDuration(out.time),
                          "; expected above 0s; send what the verification took, or leave "
                          "verify_cost out")),
                      kReasonRequestInvalid);
  }
  out.draft_tokens = static_cast<int32_t>(std::min(cost.draft_tokens(), kInt32Max));
  return out;
}

void EncodeKChoice(const KChoice& choice, v1::KChoice* out) {
  out->set_k(static_cast<uint32_t>(choice.k));
  out->set_expected_tokens(choice.expected_tokens);
  EncodeDuration(choice.draft_time, out->mutable_draft_time());
  EncodeDuration(choice.verify_time, out->mutable_verify_time());
  out->set_exploring(choice.exploring);
}

KChoice DecodeKChoice(const v1::KChoice& choice) {
  KChoice out;
  out.k = static_cast<int32_t>(std::min(choice.k(), kInt32Max));
  out.expected_tokens = choice.expected_tokens();
  out.draft_time = DecodeDuration(choice.draft_time());
  out.verify_time = DecodeDuration(choice.verify_time());
  out.exploring = choice.exploring();
  return out;
}

}  // namespace aerie::rpc
