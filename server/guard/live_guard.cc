#include "server/guard/live_guard.h"

#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/log.h"

namespace aerie {
namespace {

// A client's words, so that they cannot look like lines of ours.
std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(text), "\"");
}

void Announce(const WiringReport& report, WiringState before) {
  const std::string text = absl::StrCat(
      "wiring of client ", Quoted(report.client), " and target ", Quoted(report.target), " is ",
      std::string(WiringStateName(report.state)), ": ", report.verdict);
  // That all is well from the start on is no reason to wake anybody.
  if (report.state == WiringState::kOk && before == WiringState::kUnknown) {
    AERIE_LOG(info, "{}", text);
  } else {
    AERIE_LOG(warn, "{}", text);
  }
}

}  // namespace

class LiveGuard::SessionRows final : public RowWatch {
 public:
  SessionRows(LiveGuard& owner, std::unique_ptr<SessionWatch> watch, bool fused)
      : owner_(owner), watch_(std::move(watch)), fused_(fused) {}

  void OnRows(int64_t base_length, absl::Span<const int32_t> tokens, const HiddenRows& rows,
              absl::Time now) override {
    watch_->OnRows(base_length, tokens, rows, now);
    if (!fused_) owner_.NoteSizes(base_length, rows);
  }

  void OnJudgement(const Judgement& judgement, absl::Time now) override {
    watch_->OnJudgement(judgement.depth, judgement.accepted, judgement.worker_accepted, now);
  }

 private:
  LiveGuard& owner_;
  const std::unique_ptr<SessionWatch> watch_;
  const bool fused_;
};

LiveGuard::LiveGuard(LiveGuardOptions options)
    : observer_(options.observer),
      sizes_(options.captures),
      guard_({.profile = std::move(options.profile),
              .captures = options.captures,
              .replay = true,
              .on_change = Announce,
              .on_worst = std::move(options.on_worst),
              .observer = options.observer}) {}

std::unique_ptr<RowWatch> LiveGuard::Watch(const WatchedRows& rows, absl::Time now) {
  const bool fused = rows.manifest.fused();
  return std::make_unique<SessionRows>(
      *this, guard_.Watch(rows.client, rows.manifest.target_id, now, fused), fused);
}

std::optional<Trial> LiveGuard::TakeTrial() {
  if (!replay_.has_value()) {
    replay_ = guard_.TakeReplay();
    if (!replay_.has_value()) return std::nullopt;
    scores_ = {.id = replay_->id};
  }
  const CaptureOrder& order = replay_->orders[scores_.log_probs.size()];
  const auto bytes = std::make_shared<const std::string>(replay_->Reordered(order));
  return Trial{.base_length = replay_->base_length,
               .tokens = replay_->tokens,
               .rows = replay_->View(*bytes),
               .rows_owner = bytes};
}

void LiveGuard::OnTrial(absl::Span<const float> log_probs, absl::Time now) {
  // Orders can be compared only when all were run.
  if (log_probs.empty()) return replay_.reset();
  scores_.log_probs.emplace_back(log_probs.begin(), log_probs.end());
  if (scores_.log_probs.size() < replay_->orders.size()) return;
  guard_.OnReplay(scores_, now);
  replay_.reset();
}

void LiveGuard::NoteSizes(int64_t base_length, const HiddenRows& rows) {
  if (!sizes_.Add(base_length, rows) || observer_ == nullptr) return;
  observer_->OnRowSizes(sizes_.Rms());
}

}  // namespace aerie
