#include "client/draft_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/row_chunks.h"
#include "client/session_key.h"
#include "common/error_detail.h"
#include "common/rpc/codec.h"
#include "common/rpc/session_codec.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

// A server that forgets a session over and over must not hold its worker until the deadline.
constexpr int kMaxResyncs = 2;
constexpr absl::Duration kGoodbye = absl::Milliseconds(200);

absl::Status LostSession(int64_t start) {
  return WithReason(
      absl::NotFoundError(absl::StrCat("the server no longer knows this session; expected it to be "
                                       "open; send its rows again from row ",
                                       start)),
      kReasonSessionUnknown);
}

// The row to resend from when `status` says that the server lacks rows of a session that begins at
// row `start`.
std::optional<int64_t> ResendPoint(const absl::Status& status, int64_t start) {
  const ErrorDetail detail = DetailOf(status);
  if (detail.reason == kReasonSessionUnknown) return start;
  if (detail.reason == kReasonBaseLengthAhead || detail.reason == kReasonEvicted) {
    return detail.resend_from;
  }
  return std::nullopt;
}

// A server from before fp8 rows would say no more than that it does not know the dtype, and one
// from before fused rows would not look at the field at all.
absl::Status CheckTravel(const Manifest& manifest, const v1::GetServerInfoResponse& info) {
  const auto& dtypes = info.dtypes();
  if (manifest.fp8 &&
      std::find(dtypes.begin(), dtypes.end(), v1::DATA_TYPE_FLOAT8_E4M3FN) == dtypes.end()) {
    return absl::FailedPreconditionError(
        "the manifest asks for fp8 rows, which the server does not list among its dtypes; expected "
        "DATA_TYPE_FLOAT8_E4M3FN there; send rows in bfloat16, or upgrade the server");
  }
  const bool takes_fused =
      std::any_of(info.drafters().begin(), info.drafters().end(),
                  [](const v1::DrafterInfo& drafter) { return !drafter.fc_digest().empty(); });
  if (manifest.fused() && !takes_fused) {
    return absl::FailedPreconditionError(
        "the manifest asks for fused rows, which no drafter of the server takes; expected one with "
        "an fc_digest; send captures, or upgrade the server");
  }
  return absl::OkStatus();
}

std::string ChooseKey(const SessionSettings& settings, ClientCore& core) {
  if (!settings.key.empty()) return settings.key;
  if (core.options().transport == TransportKind::kStream) return core.key();
  std::optional<std::string> of_parent = core.KeyOf(settings.options.fork_of);
  return of_parent.has_value() ? *std::move(of_parent) : NewSessionKey();
}

RowBatch Slice(const RowBatch& batch, int64_t first, int64_t count) {
  return {batch.tokens.subspan(first, count), batch.rows.Slice(first, count)};
}

}  // namespace

DraftSession::DraftSession(std::shared_ptr<ClientCore> core, Manifest manifest,
                           SessionSettings settings)
    : core_(std::move(core)),
      manifest_(std::move(manifest)),
      settings_(std::move(settings)),
      metadata_{ChooseKey(settings_, *core_), settings_.options.traceparent} {}

DraftSession::~DraftSession() {
  if (!closed_) Abandon();
}

void DraftSession::Abandon() {
  if (id_.empty()) return;
  auto request = std::make_shared<v1::DraftStreamRequest>();
  request->mutable_close_session()->set_session_id(id_);
  ForgetId();
  core_->Exchange(std::move(request), metadata_, absl::Now() + kGoodbye, nullptr).IgnoreError();
}

void DraftSession::ForgetId() {
  core_->ForgetKey(id_);
  id_.clear();
}

absl::Status DraftSession::CheckKey() const {
  if (settings_.key.empty()) return absl::OkStatus();
  if (core_->options().transport == TransportKind::kStream) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the session has the key \"", settings_.key,
        "\", but its client sends all sessions on one stream, which goes to one server; expected "
        "no key; leave it empty, or use TransportKind::kUnary"));
  }
  return CheckSessionKey(settings_.key);
}

absl::Status DraftSession::Open(absl::Time deadline) {
  AERIE_RETURN_IF_ERROR(settings_.options.Validate());
  AERIE_RETURN_IF_ERROR(CheckKey());
  AERIE_ASSIGN_OR_RETURN(const auto info, core_->ServerInfo(deadline));
  const v1::Limits& limits = info->limits();
  const RowLimits row_limits = {limits.max_rows_per_call(),
                                std::min<int64_t>(static_cast<int64_t>(limits.max_message_bytes()),
                                                  core_->options().max_message_bytes)};
  AERIE_ASSIGN_OR_RETURN(rows_per_call_, RowsPerCall(row_limits, manifest_.wire_row_bytes()));
  AERIE_RETURN_IF_ERROR(CheckTravel(manifest_, *info));
  AERIE_RETURN_IF_ERROR(core_->shared_rows().Ensure(*info, settings_.options.client, deadline));

  SessionOptions asked = settings_.options;
  if (was_open_) asked.fork_of.clear();
  auto request = std::make_shared<v1::DraftStreamRequest>();
  v1::OpenSessionRequest& open = *request->mutable_open_session();
  rpc::EncodeManifest(manifest_, open.mutable_manifest());
  rpc::EncodeOpening(asked, &open);
  AERIE_ASSIGN_OR_RETURN(const auto response,
                         core_->Exchange(std::move(request), metadata_, deadline, nullptr));
  id_ = response.open_session().session_id();
  core_->RememberKey(id_, key());
  was_open_ = true;
  seq_ = 0;
  const absl::Status read = ReadOpened(response.open_session());
  // A session that drafts otherwise than was asked for must not be gone on with.
  if (!read.ok()) Abandon();
  return read;
}

absl::Status DraftSession::ReadOpened(const v1::OpenSessionResponse& response) {
  const absl::StatusOr<SessionOptions> told = rpc::DecodeSessionOptions(response.options());
  if (!told.ok()) {
    return absl::InternalError(
        absl::StrCat("the server says that it drafts with options that contradict each other (",
                     told.status().message(), "); expected those in force; compare versions"));
  }
  const SessionOptions& asked = settings_.options;
  if (told->tree != asked.tree || told->temperature != asked.temperature ||
      told->probs != asked.probs || told->extras != asked.extras ||
      told->adaptive_k != asked.adaptive_k) {
    return absl::FailedPreconditionError(
        "the server drafts otherwise than was asked for: tree, sampling, extras or adaptive k "
        "differ in its answer; expected what the options say; upgrade the server, or ask for what "
        "it has");
  }
  in_force_ = asked;
  in_force_.max_k = told->max_k;
  in_force_.top_m = told->top_m;
  initial_length_ = response.length();
  return absl::OkStatus();
}

DraftOutcome DraftSession::Draft(const DraftInput& input) {
  DraftOutcome outcome;
  outcome.status = CheckInput(input);
  if (!outcome.status.ok()) return outcome;
  const absl::Time deadline =
      input.deadline.has_value() ? absl::Now() + *input.deadline : core_->Deadline();
  // A session that was lost earlier holds nothing. No message is needed to know that.
  std::optional<int64_t> resend = input.base_length;
  if (id_.empty()) {
    resend = settings_.options.start;
    outcome.status = LostSession(settings_.options.start);
  }
  for (;;) {
    if (*resend < input.base_length && !settings_.row_source) {
      outcome.resend_from = resend;
      return outcome;
    }
    outcome.status = SendFrom(*resend, input, deadline, &outcome);
    if (outcome.status.ok()) return outcome;
    outcome.tree = DraftTree();
    resend = ResendPoint(outcome.status, settings_.options.start);
    if (!resend.has_value()) return outcome;
    if (DetailOf(outcome.status).reason == kReasonSessionUnknown) {
      ForgetId();
      core_->ForgetServerInfo();
    }
    if (outcome.resyncs == kMaxResyncs) return outcome;
    if (*resend >= input.base_length || settings_.row_source) ++outcome.resyncs;
  }
}

absl::StatusOr<AcceptanceRecord> DraftSession::Close(absl::Span<const int32_t> final_tokens) {
  if (closed_) {
    return absl::FailedPreconditionError(
        "the session was closed before; a session ends once; open another one");
  }
  closed_ = true;
  if (id_.empty()) return LostSession(settings_.options.start);
  auto request = std::make_shared<v1::DraftStreamRequest>();
  v1::CloseSessionRequest& close = *request->mutable_close_session();
  close.set_session_id(id_);
  rpc::EncodeTokens(final_tokens, close.mutable_final_token_ids());
  core_->ForgetKey(id_);
  AERIE_ASSIGN_OR_RETURN(const auto response, core_->Exchange(std::move(request), metadata_,
                                                              core_->Deadline(), nullptr));
  return rpc::DecodeAcceptanceRecord(response.close_session().acceptance());
}

absl::Status DraftSession::CheckInput(const DraftInput& input) const {
  if (closed_) {
    return absl::FailedPreconditionError(
        "the session has been closed; a draft needs an open one; open another session");
  }
  const auto tokens = static_cast<int64_t>(input.tokens.size());
  if (input.rows.rows() != tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("the call has ", tokens, " tokens and ", input.rows.rows(),
                     " rows of hidden states; expected one row a token; pass the state of the "
                     "position before each token"));
  }
  if (tokens > 0 &&
      (input.rows.width() != manifest_.row_width() || input.rows.dtype() != manifest_.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the rows are ", input.rows.width(), " wide in ", DTypeName(input.rows.dtype()),
        ", but the session's manifest says ", manifest_.row_width(), " in ",
        DTypeName(manifest_.dtype), "; convert them or open a session with another manifest"));
  }
  return absl::OkStatus();
}

absl::Status DraftSession::SendFrom(int64_t from, const DraftInput& input, absl::Time deadline,
                                    DraftOutcome* outcome) {
  const bool reopened = id_.empty();
  if (reopened) AERIE_RETURN_IF_ERROR(Open(deadline));
  if (from < input.base_length) {
    AERIE_ASSIGN_OR_RETURN(const RowBatch lost, settings_.row_source(from, input.base_length));
    if (lost.rows.rows() != input.base_length - from ||
        static_cast<int64_t>(lost.tokens.size()) != lost.rows.rows()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the row source gave ", lost.tokens.size(), " tokens and ", lost.rows.rows(),
          " rows for rows ", from, " to ", input.base_length, "; expected exactly these"));
    }
    AERIE_RETURN_IF_ERROR(SendRows(from, lost, Wish(), deadline, outcome));
  }
  // Rows of this call that arrived before the session was found behind need not travel again.
  const auto count = static_cast<int64_t>(input.tokens.size());
  const int64_t held = std::clamp<int64_t>(from - input.base_length, 0, count);
  const RowBatch rest = Slice({input.tokens, input.rows}, held, count - held);
  // A session that was opened anew has had no proposal of which anything could be accepted.
  const bool tells = held == 0 && !reopened;
  const Wish wish = {input.k, tells ? input.accepted : std::nullopt, input.verify_cost};
  return SendRows(input.base_length + held, rest, wish, deadline, outcome);
}

absl::Status DraftSession::SendRows(int64_t first, const RowBatch& batch, const Wish& wish,
                                    absl::Time deadline, DraftOutcome* outcome) {
  const auto count = static_cast<int64_t>(batch.tokens.size());
  int64_t sent = 0;
  do {
    const int64_t rows = std::min(rows_per_call_, count - sent);
    Wish of_message = wish;
    if (sent > 0) of_message.accepted.reset();
    if (sent + rows < count) of_message.k = 0;
    AERIE_RETURN_IF_ERROR(
        SendMessage(first + sent, Slice(batch, sent, rows), of_message, deadline, outcome));
    // Rows past the server's context are not taken, and neither are those behind them.
    if (outcome->no_draft_reason == v1::NO_DRAFT_REASON_CONTEXT_LIMIT) return absl::OkStatus();
    sent += rows;
  } while (sent < count);
  return absl::OkStatus();
}

absl::Status DraftSession::SendMessage(int64_t first, const RowBatch& batch, const Wish& wish,
                                       absl::Time deadline, DraftOutcome* outcome) {
  auto request = std::make_shared<v1::DraftStreamRequest>();
  v1::DraftRequest& draft = *request->mutable_draft();
  draft.set_session_id(id_);
  draft.set_seq(++seq_);  // kept by every repeat of this message, so that it is served once
  draft.set_base_length(static_cast<uint32_t>(first));
  rpc::EncodeTokens(batch.tokens, draft.mutable_token_ids());
  const std::optional<SharedRows::Slot> slot =
      batch.rows.empty()
          ? std::nullopt
          : core_->shared_rows().Encode(batch.rows, manifest_, draft.mutable_hidden_states());
  draft.set_k(static_cast<uint32_t>(wish.k));
  if (wish.accepted.has_value()) draft.set_accepted(static_cast<uint32_t>(*wish.accepted));
  // It says something about the k to choose, so it goes with the message that drafts.
  if (wish.verify_cost.has_value() && wish.k > 0) {
    rpc::EncodeVerifyCost(*wish.verify_cost, draft.mutable_verify_cost());
  }
  // A tenth is left for the way home of a draft that is cut.
  const absl::Duration limit = 0.9 * (deadline - absl::Now());
  if (limit > absl::ZeroDuration() && limit < absl::InfiniteDuration()) {
    rpc::EncodeDuration(limit, draft.mutable_time_limit());
  }
  auto response = core_->Exchange(request, metadata_, deadline, &outcome->attempts);
  if (slot.has_value() && SharedRows::IsRefusal(response.status())) {
    // The session stands as it was, so the same call goes again, in a message of its own.
    core_->shared_rows().Drop(*slot, response.status(), deadline);
    auto again = std::make_shared<v1::DraftStreamRequest>(*request);
    v1::HiddenStates& states = *again->mutable_draft()->mutable_hidden_states();
    states.Clear();
    rpc::EncodeHiddenStates(batch.rows, manifest_, &states);
    response = core_->Exchange(std::move(again), metadata_, deadline, &outcome->attempts);
  }
  if (!response.ok()) return response.status();
  return ReadAnswer(response->draft(), outcome);
}

}  // namespace aerie
