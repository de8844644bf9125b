// A worker over the C++ client for aerie-conformance: decodes one text of a target made of hashes
// and prints its tokens. What the client does not do by itself it does: it asks again for a session
// that could not be opened, and waits when the server says how long.
#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/draft_client.h"
#include "client/verify.h"
#include "common/check.h"
#include "common/error_detail.h"
#include "tests/conformance/cpp_target.h"

namespace aerie {
namespace {

constexpr int32_t kDraftTokens = 4;

class DraftedText {
 public:
  explicit DraftedText(DraftClient* client) : client_(client), history_(HashTarget::Prompt()) {
    for (size_t i = 1; i <= history_.size(); ++i) AddRow(i);
    history_.push_back(HashTarget::Choice(history_));
  }

  // Decodes until `length` tokens follow the prompt, and ends the session.
  std::vector<int32_t> Decode(size_t length) {
    const size_t prompt = HashTarget::Prompt().size();
    const size_t end = prompt + length;
    while (history_.size() < end) {
      const auto room = static_cast<int32_t>(end - history_.size()) - 1;
      Verify(room > 0 ? Propose(std::min(kDraftTokens, room)) : DraftTree(), end);
    }
    if (session_ != nullptr) {
      const std::vector<int32_t> final_tokens(history_.begin() + 1 + held_, history_.end());
      session_->Close(final_tokens).status().IgnoreError();
    }
    return {history_.begin() + static_cast<int64_t>(prompt), history_.end()};
  }

 private:
  // The row of position `length - 1`, whose token is history_[length - 1].
  void AddRow(size_t length) {
    HashTarget::AppendRow({history_.begin(), history_.begin() + static_cast<int64_t>(length)},
                          &bytes_);
  }

  int64_t rows() const { return static_cast<int64_t>(history_.size()) - 1; }

  RowBatch Batch(int64_t first, int64_t last) {
    // A token each row: the one that follows its state.
    tokens_.assign(history_.begin() + 1, history_.end());
    const int64_t width = 2 * HashTarget::kHiddenSize;
    const auto row_bytes = static_cast<size_t>(width) * sizeof(float);
    auto rows = HiddenRows::Create(
        DType::kF32, last - first, width,
        std::string_view(bytes_).substr(static_cast<size_t>(first) * row_bytes,
                                        static_cast<size_t>(last - first) * row_bytes));
    AERIE_CHECK(rows.ok()) << rows.status();
    return {absl::MakeConstSpan(tokens_).subspan(static_cast<size_t>(first),
                                                 static_cast<size_t>(last - first)),
            *rows};
  }

  // Empty: decode this round alone.
  DraftTree Propose(int32_t k) {
    const std::optional<int32_t> accepted = std::exchange(accepted_, std::nullopt);
    if (full_ || absl::Now() < not_before_) return DraftTree();
    if (session_ == nullptr) {
      SessionSettings settings;
      settings.row_source = [this](int64_t first, int64_t last) -> absl::StatusOr<RowBatch> {
        return Batch(first, last);
      };
      auto opened = client_->Open(HashTarget::TargetManifest(), std::move(settings));
      if (!opened.ok()) return DraftTree();
      session_ = *std::move(opened);
    }
    DraftInput input;
    input.base_length = held_;
    const RowBatch batch = Batch(held_, rows());
    input.tokens = batch.tokens;
    input.rows = batch.rows;
    input.k = k;
    input.accepted = accepted;
    DraftOutcome outcome = session_->Draft(input);
    if (!outcome.status.ok()) {
      const std::optional<absl::Duration> wait = DetailOf(outcome.status).retry_after;
      if (wait.has_value()) not_before_ = absl::Now() + *wait;
      return DraftTree();
    }
    full_ = outcome.no_draft_reason == v1::NO_DRAFT_REASON_CONTEXT_LIMIT;
    held_ = outcome.length;
    return std::move(outcome.tree);
  }

  void Verify(const DraftTree& draft, size_t end) {
    std::vector<int32_t> argmax;
    for (int32_t node = 0; node <= draft.size(); ++node) {
      std::vector<int32_t> path;
      for (int32_t at = node; at != 0; at = draft.parents[static_cast<size_t>(at - 1)]) {
        path.insert(path.begin(), draft.tokens[static_cast<size_t>(at - 1)]);
      }
      std::vector<int32_t> history = history_;
      history.insert(history.end(), path.begin(), path.end());
      argmax.push_back(HashTarget::Choice(history));
    }
    const absl::StatusOr<TreeVerdict> verdict = VerifyGreedy(draft, argmax);
    AERIE_CHECK(verdict.ok()) << verdict.status();
    if (!draft.empty()) accepted_ = static_cast<int32_t>(verdict->path.size());
    for (const int32_t token : verdict->tokens) {
      if (history_.size() == end) break;
      AddRow(history_.size());
      history_.push_back(token);
    }
  }

  DraftClient* const client_;
  std::vector<int32_t> history_;
  std::vector<int32_t> tokens_;  // of the batch that was made last
  std::string bytes_;            // of all rows: one less than tokens
  std::unique_ptr<DraftSession> session_;
  int64_t held_ = 0;  // rows that the server told to have
  std::optional<int32_t> accepted_;
  absl::Time not_before_ = absl::InfinitePast();
  bool full_ = false;
};

int Main(int argc, char** argv) {
  CLI::App app("A worker over the C++ client for aerie-conformance.");
  std::string address;
  std::string transport = "unary";
  size_t tokens = 60;
  app.add_option("--address", address, "The draft server, host:port.")->required();
  app.add_option("--transport", transport, "unary or stream.")
      ->check(CLI::IsMember({"unary", "stream"}))
      ->capture_default_str();
  app.add_option("--tokens", tokens, "Tokens to decode, 1 or more.")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  ClientOptions options;
  options.transport = transport == "stream" ? TransportKind::kStream : TransportKind::kUnary;
  // Long enough for a busy machine: a close that does not arrive is a fault of the worker.
  options.deadline = absl::Seconds(3);
  auto client = DraftClient::Create(address, options);
  if (!client.ok()) {
    std::cerr << client.status() << "\n";
    return 2;
  }
  std::cout << absl::StrJoin(DraftedText(client->get()).Decode(tokens), " ") << "\n";
  return 0;
}

}  // namespace
}  // namespace aerie

int main(int argc, char** argv) { return aerie::Main(argc, argv); }
