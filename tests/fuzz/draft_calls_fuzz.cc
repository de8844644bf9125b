// Any conversation with a server, over the transport's decoding and the engine: what is refused
// leaves no trace.
//
// Two engines hear the same conversation, but the second only what the first one did not refuse.
// Their answers must be equal to the end: a refused call that moved a row, a number or a draft
// would show.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "client/draft_call.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "common/rpc/tree_codec.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "server/transport/draft_messages.h"
#include "tests/fuzz/call_script.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/honest_worker.h"
#include "tests/server/engine/core_driver.h"

namespace {

using namespace aerie;  // NOLINT: it is all that this file is about

EngineOptions OptionsOf(uint8_t settings) {
  EngineOptions options;
  options.max_k = 8;
  options.max_rows_per_call = 12;
  options.max_rows_per_pass = 5;
  options.max_sessions = 3;
  options.max_context = 40;
  if ((settings & kScriptWindow) != 0) {
    options.draft_window = 6;
    options.draft_sink = 2;
  }
  if ((settings & kScriptClients) != 0) {
    options.max_sessions_per_client = 1;
    options.max_queued_per_client = 1;
  }
  return options;
}

FakeDraftModelOptions ModelOptions() {
  FakeDraftModelOptions options;
  options.spec.fc_digest = kScriptFcDigest;
  options.kv_store.num_pages = 256;  // more than all sessions can fill: nobody is evicted
  return options;
}

// What a request came to.
struct Answer {
  absl::Status status;
  bool opened = false;
  bool adaptive = false;  // the session chooses k by the time that passes take
  std::optional<OpenResult> open;
  std::optional<DraftResult> draft;
  std::optional<AcceptanceRecord> close;
};

class World {
 public:
  explicit World(const EngineOptions& options) : driver_(options, ModelOptions()) {}

  // Requests that arrive together.
  std::vector<Answer> Hear(const std::vector<v1::DraftStreamRequest>& messages) {
    std::vector<Pending> pending;
    for (const v1::DraftStreamRequest& message : messages) pending.push_back(Begin(message));
    driver_.RunAll();
    std::vector<Answer> answers;
    for (const Pending& each : pending) answers.push_back(End(each));
    return answers;
  }

 private:
  struct Pending {
    Answer answer;
    std::shared_ptr<v1::DraftStreamRequest> message;
    ReplyPtr<DraftResult> draft;
    ReplyPtr<AcceptanceRecord> close;
  };

  Pending Begin(const v1::DraftStreamRequest& message) {
    Pending out;
    out.message = std::make_shared<v1::DraftStreamRequest>(message);
    NameSessions(ids_, out.message.get());
    switch (message.request_case()) {
      case v1::DraftStreamRequest::kOpenSession:
        Open(&out);
        break;
      case v1::DraftStreamRequest::kDraft:
        Draft(&out);
        break;
      case v1::DraftStreamRequest::kCloseSession:
        Close(&out);
        break;
      case v1::DraftStreamRequest::kBatch:
      case v1::DraftStreamRequest::REQUEST_NOT_SET:
        // The stream takes the one apart, and says of the other that it is empty.
        out.answer.status = WithReason(
            absl::InvalidArgumentError("empty; expected a request; send one"), "REQUEST_INVALID");
    }
    return out;
  }

  void Open(Pending* out) {
    absl::StatusOr<OpenCall> call = DecodeOpenRequest(out->message->open_session());
    out->answer.status = call.status();
    if (!call.ok()) return;
    const bool adaptive = call->options.adaptive_k;
    absl::StatusOr<OpenResult> opened = driver_.Open(call->manifest, call->options);
    out->answer.status = opened.status();
    if (!opened.ok()) return;
    ids_.push_back(opened->session_id);
    adaptive_.push_back(adaptive);
    v1::OpenSessionResponse response;
    EncodeOpenResult(*opened, call->options, &response);
    out->answer.open = *std::move(opened);
  }

  void Draft(Pending* out) {
    const v1::DraftRequest& request = out->message->draft();
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (request.session_id() == ids_[i]) out->answer.adaptive = adaptive_[i];
    }
    absl::StatusOr<DraftCall> call =
        DecodeDraftRequest(request, driver_.model.spec(), driver_.now, absl::InfiniteFuture());
    out->answer.status = call.status();
    if (!call.ok()) return;
    AERIE_CHECK(call->deadline > driver_.now);
    // The two worlds make different passes, so time passes in them in different ways.
    call->deadline = absl::InfiniteFuture();
    if (call->rows_owner == nullptr) call->rows_owner = out->message;
    out->draft = driver_.Draft(*std::move(call));
  }

  void Close(Pending* out) {
    const v1::CloseSessionRequest& request = out->message->close_session();
    absl::StatusOr<std::vector<int32_t>> tokens = DecodeFinalTokens(request, driver_.model.spec());
    out->answer.status = tokens.status();
    if (tokens.ok()) out->close = driver_.Close(request.session_id(), *std::move(tokens));
  }

  Answer End(const Pending& pending) {
    Answer answer = pending.answer;
    if (pending.draft != nullptr) {
      const absl::StatusOr<DraftResult> result = pending.draft->value();
      answer.status = result.status();
      if (result.ok()) answer.draft = *result;
    }
    if (pending.close != nullptr) {
      const absl::StatusOr<AcceptanceRecord> record = pending.close->value();
      answer.status = record.status();
      if (record.ok()) answer.close = *record;
    }
    return answer;
  }

  CoreDriver driver_;
  std::vector<std::string> ids_;  // in the order in which they were opened
  std::vector<bool> adaptive_;    // likewise
};

// A client reads what the server says.
void CheckTravels(const DraftResult& result) {
  v1::DraftResponse response;
  EncodeDraftResult(result, &response);
  DraftOutcome outcome;
  const absl::Status read = ReadAnswer(response, &outcome);
  AERIE_CHECK(read.ok()) << read.ToString();
  AERIE_CHECK(outcome.tree == result.tree);
  AERIE_CHECK(outcome.length == result.length);
}

void CheckRefusal(const absl::Status& status) {
  const std::string text = status.ToString();
  AERIE_CHECK(!DetailOf(status).reason.empty()) << text;
  AERIE_CHECK(absl::StrContains(status.message(), "expected")) << text;
  // INTERNAL is our own fault, and nobody else's.
  AERIE_CHECK(!absl::IsInternal(status) && !absl::IsUnknown(status)) << text;
}

void CheckEqual(const Answer& first, const Answer& second) {
  AERIE_CHECK(second.status.ok()) << second.status.ToString();
  AERIE_CHECK(first.open.has_value() == second.open.has_value());
  if (first.open.has_value()) {
    AERIE_CHECK(first.open->length == second.open->length);
    AERIE_CHECK(first.open->max_k == second.open->max_k);
    AERIE_CHECK(first.open->top_m == second.open->top_m);
  }
  AERIE_CHECK(first.draft.has_value() == second.draft.has_value());
  if (first.draft.has_value()) {
    AERIE_CHECK(first.draft->seq == second.draft->seq);
    AERIE_CHECK(first.draft->length == second.draft->length);
    CheckTravels(*first.draft);
    if (!first.adaptive) {
      AERIE_CHECK(first.draft->tree == second.draft->tree);
      AERIE_CHECK(first.draft->accepted == second.draft->accepted);
      AERIE_CHECK(first.draft->no_draft_reason == second.draft->no_draft_reason);
    }
  }
  AERIE_CHECK(first.close.has_value() == second.close.has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Text that is not UTF-8 would be told of on standard error.
  static const google::protobuf::LogSilencer silence;
  const CallScript script = ReadScript({reinterpret_cast<const char*>(data), size});
  const EngineOptions options = OptionsOf(script.settings);
  World all(options), accepted(options);
  std::vector<v1::DraftStreamRequest> together;
  for (size_t i = 0; i < script.frames.size(); ++i) {
    v1::DraftStreamRequest message;
    if (message.ParseFromString(script.frames[i])) together.push_back(std::move(message));
    const bool more = !together.empty() && together.back().id() % 2 == 1;
    if (more && i + 1 < script.frames.size()) continue;

    const std::vector<Answer> answers = all.Hear(together);
    std::vector<v1::DraftStreamRequest> kept;
    std::vector<Answer> answers_of_kept;
    for (size_t j = 0; j < answers.size(); ++j) {
      if (!answers[j].status.ok()) {
        CheckRefusal(answers[j].status);
        continue;
      }
      kept.push_back(together[j]);
      answers_of_kept.push_back(answers[j]);
    }
    const std::vector<Answer> again = accepted.Hear(kept);
    for (size_t j = 0; j < again.size(); ++j) CheckEqual(answers_of_kept[j], again[j]);
    together.clear();
  }
  // The fakes report to the test library, which runs no test here.
  AERIE_CHECK(!testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed());
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  return MutateScript(data, size, max_size, seed);
}
