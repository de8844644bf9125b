#include "server/transport/draft_messages.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/session_codec.h"
#include "common/rpc/tree_codec.h"
#include "common/status_macros.h"
#include "server/transport/call_rows.h"

namespace aerie {
namespace {

constexpr uint32_t kInt32Max = std::numeric_limits<int32_t>::max();

v1::NoDraftReason EncodeNoDraftReason(NoDraftReason reason) {
  switch (reason) {
    case NoDraftReason::kNone:
      return v1::NO_DRAFT_REASON_UNSPECIFIED;
    case NoDraftReason::kNotAsked:
      return v1::NO_DRAFT_REASON_NOT_ASKED;
    case NoDraftReason::kContextLimit:
      return v1::NO_DRAFT_REASON_CONTEXT_LIMIT;
    case NoDraftReason::kDeadline:
      return v1::NO_DRAFT_REASON_DEADLINE;
    case NoDraftReason::kNotWorthwhile:
      return v1::NO_DRAFT_REASON_NOT_WORTHWHILE;
  }
  return v1::NO_DRAFT_REASON_UNSPECIFIED;
}

v1::ProposalMethod EncodeProposalMethod(ProposalMethod method) {
  switch (method) {
    case ProposalMethod::kGreedyChain:
      return v1::PROPOSAL_METHOD_GREEDY_CHAIN;
    case ProposalMethod::kSampledChain:
      return v1::PROPOSAL_METHOD_SAMPLED_CHAIN;
    case ProposalMethod::kGreedyTree:
      return v1::PROPOSAL_METHOD_GREEDY_TREE;
    case ProposalMethod::kSampledTree:
      return v1::PROPOSAL_METHOD_SAMPLED_TREE;
  }
  return v1::PROPOSAL_METHOD_UNSPECIFIED;
}

// What the rows of a call are checked against: the manifest's own word when the call is stateless,
// else the drafter's, which every open session's manifest equals.
struct RowShape {
  Wiring wiring;
  int64_t hidden_size = 0;
  int32_t vocab_size = 0;

  int32_t fused_width = 0;

  int64_t width(bool fused) const { return fused ? fused_width : hidden_size * wiring.size(); }
};

absl::StatusOr<absl::Duration> DecodeTimeLimit(const google::protobuf::Duration& time_limit) {
  const absl::Duration limit = rpc::DecodeDuration(time_limit);
  if (limit > absl::ZeroDuration()) return limit;
  return WithReason(
      absl::InvalidArgumentError(absl::StrCat("time_limit is ", absl::FormatDuration(limit),
                                              "; expected above 0s; leave it out for no limit")),
      kReasonRequestInvalid);
}

}  // namespace

absl::StatusOr<ServedDrafterPtr> DrafterOf(const OpenCall& call, const DrafterDirectory& drafters) {
  // A fork has its parent's rows, so it is where they are.
  if (!call.options.fork_of.empty()) return drafters.ForSession(call.options.fork_of);
  return drafters.ForManifest(call.manifest.drafter);
}

absl::StatusOr<ServedDrafterPtr> DrafterOf(const v1::DraftRequest& request,
                                           const DrafterDirectory& drafters) {
  switch (request.sequence_case()) {
    case v1::DraftRequest::kSessionId:
      return drafters.ForSession(request.session_id());
    case v1::DraftRequest::kManifest:
      return drafters.ForManifest(request.manifest().drafter());
    case v1::DraftRequest::SEQUENCE_NOT_SET:
      break;
  }
  return drafters.First();
}

void TellNobodys(const absl::Status& status, const ServedDrafter& drafter) {
  if (!absl::IsFailedPrecondition(status) || drafter.round_observer == nullptr) return;
  drafter.round_observer->OnRejected(RejectReason::kWiring);
}

int64_t BytesInSharedMemory(const v1::DraftRequest& request, int64_t max_message_bytes) {
  return static_cast<int64_t>(std::min(request.hidden_states().shared().length(),
                                       static_cast<uint64_t>(max_message_bytes)));
}

absl::StatusOr<DraftCall> DecodeDraftRequest(const v1::DraftRequest& request,
                                             const DrafterSpec& spec, absl::Time arrival,
                                             absl::Time rpc_deadline,
                                             const SharedMemoryAccess& shared) {
  DraftCall call;
  call.arrival = arrival;
  call.deadline = rpc_deadline;
  if (request.has_time_limit()) {
    AERIE_ASSIGN_OR_RETURN(const absl::Duration limit, DecodeTimeLimit(request.time_limit()));
    call.deadline = std::min(rpc_deadline, arrival + limit);
  }
  RowShape shape{spec.wiring, spec.target_hidden_size, spec.vocab_size, spec.hidden_size};
  switch (request.sequence_case()) {
    case v1::DraftRequest::kSessionId:
      call.sequence = request.session_id();
      break;
    case v1::DraftRequest::kManifest: {
      AERIE_ASSIGN_OR_RETURN(Manifest manifest, rpc::DecodeManifest(request.manifest()));
      shape = {manifest.wiring, manifest.hidden_size, manifest.vocab_size, spec.hidden_size};
      call.sequence = std::move(manifest);
      break;
    }
    case v1::DraftRequest::SEQUENCE_NOT_SET:
      return WithReason(
          absl::InvalidArgumentError("the call names no sequence; expected session_id or manifest; "
                                     "open a session, or send a manifest for a stateless call"),
          kReasonRequestInvalid);
  }
  call.seq = request.seq();
  call.base_length = request.base_length();
  if (request.k() > kInt32Max) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat("k is ", request.k(), "; expected 0..", kInt32Max,
                                                "; see max_k in GetServerInfo")),
        kReasonKOutOfRange);
  }
  call.k = static_cast<int32_t>(request.k());
  if (request.has_accepted()) {
    // Only ever compared with a small number, so the largest stands for all that is larger.
    call.accepted = static_cast<int32_t>(std::min(request.accepted(), kInt32Max));
  }
  if (request.has_verify_cost()) {
    AERIE_ASSIGN_OR_RETURN(const VerifyCost cost, rpc::DecodeVerifyCost(request.verify_cost()));
    call.verify_time = cost.time;
    call.verify_tokens = cost.draft_tokens;
  }
  AERIE_ASSIGN_OR_RETURN(call.tokens,
                         rpc::DecodeTokens(request.token_ids(), shape.vocab_size, "token_ids"));
  const v1::HiddenStates& states = request.hidden_states();
  AERIE_ASSIGN_OR_RETURN(rpc::DecodedStates decoded, ReadRows(states, request.token_ids_size(),
                                                              shape.width(states.fused()), shared));
  call.rows = decoded.rows;
  call.rows_owner = std::move(decoded.owner);
  call.fp8 = decoded.fp8;
  call.fused = decoded.fused;
  call.shared_memory = states.has_shared();
  call.row_bytes =
      static_cast<int64_t>(call.shared_memory ? states.shared().length() : states.data().size());
  AERIE_RETURN_IF_ERROR(rpc::CheckFinite(call.rows, call.base_length, shape.wiring,
                                         call.fused ? 0 : shape.hidden_size));
  return call;
}

void EncodeDraftResult(const DraftResult& result, v1::DraftResponse* response) {
  response->set_seq(result.seq);
  response->set_length(static_cast<uint32_t>(result.length));
  // The root is the newest token, and n tokens have n - 1 rows: its position is the length.
  rpc::EncodeDraftTree(result.tree, result.length, result.extras, response->mutable_tree());
  response->set_no_draft_reason(EncodeNoDraftReason(result.no_draft_reason));
  response->set_method(EncodeProposalMethod(result.method));
  if (result.accepted) response->set_accepted(static_cast<uint32_t>(*result.accepted));
  v1::DraftTiming* timing = response->mutable_timing();
  rpc::EncodeDuration(result.timing.queue, timing->mutable_queue());
  rpc::EncodeDuration(result.timing.extend, timing->mutable_extend());
  rpc::EncodeDuration(result.timing.step, timing->mutable_step());
  rpc::EncodeDuration(result.timing.total, timing->mutable_total());
  if (result.k_choice) rpc::EncodeKChoice(*result.k_choice, response->mutable_k_choice());
}

void EncodeAndTell(const DraftResult& result, RoundObserver* observer,
                   v1::DraftResponse* response) {
  const absl::Time start = absl::Now();
  EncodeDraftResult(result, response);
  if (observer != nullptr) observer->OnReplyEncoded(absl::Now() - start);
}

absl::StatusOr<OpenCall> DecodeOpenRequest(const v1::OpenSessionRequest& request) {
  if (!request.has_manifest()) {
    return WithReason(
        absl::InvalidArgumentError("the call brings no manifest; expected what the worker captures "
                                   "from its target; fill OpenSessionRequest.manifest"),
        kReasonManifestInvalid);
  }
  OpenCall call;
  AERIE_ASSIGN_OR_RETURN(call.manifest, rpc::DecodeManifest(request.manifest()));
  AERIE_ASSIGN_OR_RETURN(call.options, rpc::DecodeOpening(request));
  return call;
}

void EncodeOpenResult(const OpenResult& result, SessionOptions asked,
                      v1::OpenSessionResponse* response) {
  response->set_session_id(result.session_id);
  asked.max_k = result.max_k;
  asked.top_m = result.top_m;
  rpc::EncodeSessionOptions(asked, response->mutable_options());
  rpc::EncodeDuration(result.lease, response->mutable_lease());
  response->set_length(static_cast<uint32_t>(result.length));
}

absl::StatusOr<std::vector<int32_t>> DecodeFinalTokens(const v1::CloseSessionRequest& request,
                                                       const DrafterSpec& spec) {
  return rpc::DecodeTokens(request.final_token_ids(), spec.vocab_size, "final_token_ids");
}

void EncodeCloseResult(const AcceptanceRecord& record, v1::CloseSessionResponse* response) {
  rpc::EncodeAcceptanceRecord(record, response->mutable_acceptance());
}

absl::Status CheckMessageSize(int64_t bytes, int64_t limit) {
  if (bytes <= limit) return absl::OkStatus();
  return WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "the request has ", bytes, " bytes; expected at most ", limit,
          "; send the rows in several calls with k = 0 on all but the last, or raise the server's "
          "--max-message-bytes")),
      kReasonMessageTooLarge);
}

absl::Status StillLoading() {
  ErrorDetail detail;
  detail.reason = kReasonLoading;
  detail.retry_after = absl::Seconds(1);
  return WithDetail(
      absl::UnavailableError("the drafter is still loading; expected calls once health says "
                             "SERVING; decode without drafts and try again"),
      detail);
}

}  // namespace aerie
