#include "client/loadtest/null_drafter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "aerie_version.h"
#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/status_codec.h"

namespace aerie::loadtest {
namespace {

constexpr int32_t kLayers = 32;
constexpr uint32_t kMaxRows = 4096, kMaxContext = 1 << 24;
constexpr uint64_t kMaxMessageBytes = uint64_t{64} << 20;

absl::Status Refuse(absl::string_view what) {
  return WithReason(
      absl::InvalidArgumentError(absl::StrCat(
          what,
          " was asked of a null server; expected chains of the most likely tokens; ask the "
          "real one")),
      kReasonOptionsInvalid);
}

absl::Status Unknown(const std::string& id) {
  return WithReason(absl::NotFoundError(absl::StrCat("no session ", id,
                                                     " here; expected an open one; open another")),
                    kReasonSessionUnknown);
}

}  // namespace

void NullDrafter::Info(v1::GetServerInfoResponse* response) const {
  response->set_protocol_version(1);
  response->mutable_build()->set_version(kVersion);
  v1::DrafterInfo& drafter = *response->add_drafters();
  drafter.set_name("null");
  drafter.set_target_num_layers(kLayers);
  drafter.set_target_hidden_size(static_cast<uint32_t>(options_.hidden_size));
  drafter.set_vocab_size(static_cast<uint32_t>(options_.vocab_size));
  for (int32_t i = 0; i < options_.captures; ++i) {
    v1::Capture& capture = *drafter.add_captures();
    capture.set_kind(v1::CAPTURE_KIND_BOUNDARY);
    capture.set_boundary(static_cast<uint32_t>(i));
  }
  v1::Limits& limits = *response->mutable_limits();
  limits.set_max_k(static_cast<uint32_t>(options_.max_k));
  limits.set_max_rows_per_call(kMaxRows);
  limits.set_max_message_bytes(kMaxMessageBytes);
  limits.set_max_sessions(1 << 20);
  limits.set_max_context(kMaxContext);
  for (const auto dtype : {v1::DATA_TYPE_BFLOAT16, v1::DATA_TYPE_FLOAT16, v1::DATA_TYPE_FLOAT32}) {
    response->add_dtypes(dtype);
  }
  response->add_transports(v1::TRANSPORT_INLINE);
}

absl::Status NullDrafter::Open(const v1::OpenSessionRequest& request,
                               v1::OpenSessionResponse* response) {
  const v1::SessionOptions& options = request.options();
  if (options.has_tree()) return Refuse("a tree");
  if (options.has_sampling()) return Refuse("sampling");
  if (request.has_fork()) return Refuse("a fork");
  *response->mutable_options() = options;
  if (options.max_k() == 0) {
    response->mutable_options()->set_max_k(static_cast<uint32_t>(options_.max_k));
  }
  absl::MutexLock lock(&mutex_);
  response->set_session_id(absl::StrCat("n", ++opened_));
  sessions_.emplace(response->session_id(), Session());
  return absl::OkStatus();
}

absl::Status NullDrafter::Draft(const v1::DraftRequest& request, v1::DraftResponse* response) {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(request.session_id());
  if (found == sessions_.end()) return Unknown(request.session_id());
  Session& session = found->second;
  response->set_seq(request.seq());
  response->set_length(request.base_length() + static_cast<uint32_t>(request.token_ids_size()));
  const int32_t accepted = Commit(request.token_ids(), &session);
  if (accepted >= 0) response->set_accepted(static_cast<uint32_t>(accepted));
  const auto k = std::min(static_cast<int32_t>(request.k()), options_.max_k);
  v1::DraftTree& tree = *response->mutable_tree();
  for (int32_t i = 0; i < k; ++i) {
    tree.add_token_ids(static_cast<uint32_t>(i) + 1);
    tree.add_parents(static_cast<uint32_t>(i));
    tree.add_log_probs(-1.0f);
    tree.add_positions(response->length() + static_cast<uint32_t>(i) + 1);
  }
  response->set_method(v1::PROPOSAL_METHOD_GREEDY_CHAIN);
  session.pending = k;
  session.drafted = session.drafted || k > 0;
  return absl::OkStatus();
}

absl::Status NullDrafter::Close(const v1::CloseSessionRequest& request,
                                v1::CloseSessionResponse* response) {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(request.session_id());
  if (found == sessions_.end()) return Unknown(request.session_id());
  Session& session = found->second;
  Commit(request.final_token_ids(), &session);
  if (session.pending > 0) ++session.record.unreported_drafts;
  rpc::EncodeAcceptanceRecord(session.record, response->mutable_acceptance());
  sessions_.erase(found);
  return absl::OkStatus();
}

void NullDrafter::Answer(const v1::DraftStreamRequest& request, v1::DraftStreamResponse* response) {
  response->Clear();
  response->set_id(request.id());
  absl::Status status;
  if (request.has_open_session()) {
    status = Open(request.open_session(), response->mutable_open_session());
  } else if (request.has_draft()) {
    status = Draft(request.draft(), response->mutable_draft());
  } else {
    status = Close(request.close_session(), response->mutable_close_session());
  }
  if (!status.ok()) *response->mutable_error() = rpc::ToErrorDetail(status);
}

// Accepted tokens of the proposal that the tokens follow; -1 without one.
int32_t NullDrafter::Commit(const google::protobuf::RepeatedField<uint32_t>& tokens,
                            Session* session) {
  if (session->drafted) session->record.completion_tokens += tokens.size();
  if (session->pending == 0 || tokens.empty()) return -1;
  int32_t accepted = 0;
  while (accepted < session->pending && accepted < tokens.size() &&
         tokens[accepted] == static_cast<uint32_t>(accepted) + 1) {
    ++accepted;
  }
  session->record.Judge(session->pending, accepted);
  session->pending = 0;
  return accepted;
}

}  // namespace aerie::loadtest
