#include "tests/client/fake_draft_service.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/session_codec.h"
#include "common/rpc/tree_codec.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

absl::Status Unknown(const std::string& id) {
  return WithReason(absl::NotFoundError(absl::StrCat("no session ", id)), kReasonSessionUnknown);
}

void Judge(const std::vector<int32_t>& continuation, FakeSession* session,
           std::optional<int32_t>* accepted) {
  if (session->proposal.empty() || continuation.empty()) return;
  *accepted = session->proposal.CountAccepted(continuation);
  session->record.Judge(session->proposal.size(), session->proposal.MaxDepth(), **accepted);
  session->proposal = DraftTree();
}

}  // namespace

FakeDraftService::FakeDraftService() {
  limits.set_max_k(8);
  limits.set_max_rows_per_call(100);
  limits.set_max_message_bytes(1 << 20);
  limits.set_max_sessions(1000);
  limits.set_max_context(2000);
}

int32_t FakeDraftService::Proposal(const std::vector<int32_t>& tokens, int32_t depth) {
  uint64_t hash = 17;
  for (const int32_t token : tokens) hash = hash * 1'000'003 + static_cast<uint64_t>(token) + 1;
  hash = hash * 31 + static_cast<uint64_t>(depth);
  return static_cast<int32_t>((hash ^ (hash >> 29)) % kVocabulary);
}

DraftTree FakeDraftService::ProposalTree(const std::vector<int32_t>& tokens, int32_t k,
                                         const SessionOptions& options) {
  DraftTree tree;
  int32_t parent = 0;
  for (int32_t depth = 0; tree.size() < k; ++depth) {
    if (options.tree.has_value() && depth == options.tree->depth) break;
    const int32_t token = Proposal(tokens, depth);
    tree.tokens.push_back(token);
    tree.parents.push_back(parent);
    if (options.tree.has_value() && tree.size() < k) {
      tree.tokens.push_back((token + 1) % kVocabulary);
      tree.parents.push_back(parent);
      parent = tree.size() - 1;
    } else {
      parent = tree.size();
    }
  }
  tree.log_probs.assign(tree.tokens.size(), -0.5f);
  if (options.probs != ProposalProbs::kNone) tree.chosen_probs.assign(tree.tokens.size(), 0.25f);
  return tree;
}

Manifest FakeDraftService::FittingManifest() {
  Manifest manifest;
  manifest.target_id = "test";
  manifest.num_layers = 6;
  manifest.hidden_size = kHiddenSize;
  manifest.vocab_size = kVocabulary;
  manifest.wiring = *Wiring::Create({Capture::Boundary(1), Capture::Boundary(3)}, 6);
  manifest.dtype = DType::kF32;
  return manifest;
}

void FakeDraftService::ForgetSessions() {
  absl::MutexLock lock(&mutex_);
  sessions_.clear();
}

void FakeDraftService::EvictSessions() {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, session] : sessions_) {
    session.tokens.clear();
    session.bytes.clear();
    session.evicted = true;
  }
}

std::vector<v1::OpenSessionRequest> FakeDraftService::OpenRequests() {
  absl::MutexLock lock(&mutex_);
  return openings_;
}

std::vector<v1::DraftRequest> FakeDraftService::DraftRequests() {
  absl::MutexLock lock(&mutex_);
  return requests_;
}

std::map<std::string, FakeSession> FakeDraftService::Sessions() {
  absl::MutexLock lock(&mutex_);
  return sessions_;
}

std::vector<std::pair<std::string, std::string>> FakeDraftService::Keys() {
  absl::MutexLock lock(&mutex_);
  return keys_;
}

int FakeDraftService::streams_started() {
  absl::MutexLock lock(&mutex_);
  return streams_;
}

absl::StatusOr<v1::OpenSessionResponse> FakeDraftService::Open(
    const v1::OpenSessionRequest& request) {
  AERIE_RETURN_IF_ERROR(rpc::DecodeManifest(request.manifest()).status());
  AERIE_ASSIGN_OR_RETURN(SessionOptions options, rpc::DecodeOpening(request));
  absl::MutexLock lock(&mutex_);
  openings_.push_back(request);
  FakeSession session;
  if (!options.fork_of.empty()) {
    const auto parent = sessions_.find(options.fork_of);
    if (parent == sessions_.end()) return Unknown(options.fork_of);
    const size_t rows = static_cast<size_t>(options.fork_length);
    session.tokens.assign(parent->second.tokens.begin(), parent->second.tokens.begin() + rows);
    session.bytes = parent->second.bytes.substr(0, rows * 2 * kHiddenSize * sizeof(float));
  }
  if (options.max_k == 0) options.max_k = static_cast<int32_t>(limits.max_k());
  if (options.temperature > 0.0f && options.top_m == 0) options.top_m = 64;
  session.options = options;
  v1::OpenSessionResponse response;
  response.set_session_id(absl::StrCat("session-", ++opened_));
  rpc::EncodeSessionOptions(options, response.mutable_options());
  if (bend_options) bend_options(response.mutable_options());
  response.set_length(static_cast<uint32_t>(options.start) +
                      static_cast<uint32_t>(session.tokens.size()));
  sessions_[response.session_id()] = std::move(session);
  return response;
}

absl::StatusOr<v1::DraftResponse> FakeDraftService::ServeDraft(const v1::DraftRequest& request) {
  {
    absl::MutexLock lock(&mutex_);
    requests_.push_back(request);
  }
  if (before_draft) AERIE_RETURN_IF_ERROR(before_draft(request));
  v1::DraftResponse response;
  {
    absl::MutexLock lock(&mutex_);
    FakeSession stateless;
    FakeSession* session = &stateless;
    if (request.has_session_id()) {
      const auto it = sessions_.find(request.session_id());
      if (it == sessions_.end()) return Unknown(request.session_id());
      session = &it->second;
    }
    if (request.seq() != 0 && request.seq() == session->last_seq) {
      response = session->last_answer;
    } else {
      AERIE_RETURN_IF_ERROR(CommitRows(request, session, &response));
      session->last_seq = request.seq();
      session->last_answer = response;
    }
  }
  if (after_draft) AERIE_RETURN_IF_ERROR(after_draft(request));
  return response;
}

absl::Status FakeDraftService::CommitRows(const v1::DraftRequest& request, FakeSession* session,
                                          v1::DraftResponse* response) {
  const size_t held = session->tokens.size();
  const auto start = static_cast<size_t>(session->options.start);
  if (request.base_length() > start + held) {
    ErrorDetail detail;
    detail.reason = session->evicted ? kReasonEvicted : kReasonBaseLengthAhead;
    detail.resend_from = static_cast<int64_t>(start + held);
    return WithDetail(absl::FailedPreconditionError("ahead"), detail);
  }
  if (request.base_length() < start) return absl::InvalidArgumentError("before the start");
  const size_t base = request.base_length() - start;
  session->evicted = false;
  response->set_seq(request.seq());
  const int rows = request.token_ids_size();
  AERIE_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens,
                         rpc::DecodeTokens(request.token_ids(), kVocabulary, "token_ids"));
  if (base < held) {
    session->proposal = DraftTree();
  } else {
    const bool drafted_before = session->record.spec_steps > 0 || !session->proposal.empty();
    std::optional<int32_t> accepted;
    Judge(tokens, session, &accepted);
    if (accepted.has_value()) response->set_accepted(static_cast<uint32_t>(*accepted));
    if (drafted_before) session->record.completion_tokens += rows;
  }
  // Tokens count even where there is no room for their rows.
  if (base + static_cast<size_t>(rows) > limits.max_context()) {
    response->set_length(static_cast<uint32_t>(start + held));
    response->set_no_draft_reason(v1::NO_DRAFT_REASON_CONTEXT_LIMIT);
    return absl::OkStatus();
  }
  const int32_t width = 2 * kHiddenSize;
  AERIE_ASSIGN_OR_RETURN(const rpc::DecodedStates decoded,
                         rpc::DecodeHiddenStates(request.hidden_states(), rows, width));
  const HiddenRows& states = decoded.rows;
  const size_t row_bytes = width * DTypeSize(states.dtype());
  session->tokens.resize(base);
  session->bytes.resize(base * row_bytes);
  session->tokens.insert(session->tokens.end(), tokens.begin(), tokens.end());
  session->bytes.append(states.bytes());
  const SessionOptions& options = session->options;
  // Adaptive k takes half of what it is offered.
  const auto offered = static_cast<int32_t>(request.k());
  const int32_t k = options.adaptive_k ? offered / 2 : offered;
  session->proposal = ProposalTree(session->tokens, k, options);
  response->set_length(static_cast<uint32_t>(start + session->tokens.size()));
  rpc::EncodeDraftTree(session->proposal, response->length(), options.extras,
                       response->mutable_tree());
  response->set_method(options.tree.has_value() ? v1::PROPOSAL_METHOD_GREEDY_TREE
                                                : v1::PROPOSAL_METHOD_GREEDY_CHAIN);
  if (k < offered) response->set_no_draft_reason(v1::NO_DRAFT_REASON_NOT_WORTHWHILE);
  if (options.adaptive_k && offered > 0) {
    rpc::EncodeKChoice({k, 1.5f, absl::Microseconds(90), absl::Milliseconds(8), true},
                       response->mutable_k_choice());
  }
  if (request.k() == 0) response->set_no_draft_reason(v1::NO_DRAFT_REASON_NOT_ASKED);
  rpc::EncodeDuration(absl::Microseconds(70), response->mutable_timing()->mutable_total());
  return absl::OkStatus();
}

absl::StatusOr<v1::CloseSessionResponse> FakeDraftService::Close(
    const v1::CloseSessionRequest& request) {
  absl::MutexLock lock(&mutex_);
  const auto it = sessions_.find(request.session_id());
  if (it == sessions_.end()) return Unknown(request.session_id());
  AERIE_ASSIGN_OR_RETURN(
      const std::vector<int32_t> tokens,
      rpc::DecodeTokens(request.final_token_ids(), kVocabulary, "final_token_ids"));
  const bool drafted_before = it->second.record.spec_steps > 0 || !it->second.proposal.empty();
  std::optional<int32_t> accepted;
  Judge(tokens, &it->second, &accepted);
  if (drafted_before) it->second.record.completion_tokens += static_cast<int64_t>(tokens.size());
  if (bend_record) bend_record(&it->second.record);
  v1::CloseSessionResponse response;
  rpc::EncodeAcceptanceRecord(it->second.record, response.mutable_acceptance());
  sessions_.erase(it);
  return response;
}

}  // namespace aerie
