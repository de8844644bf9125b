// What the guard does with the rows of one session: which it looks at, and which it keeps for a
// replay.
#include <algorithm>

#include "common/check.h"
#include "server/guard/wiring_guard.h"

namespace aerie {
namespace {

// Of a prompt one row in so many, and at most so many rows of a call.
constexpr int64_t kStride = 8, kMostOfACall = 16;
// Of a replay; fewer when the session ends before.
constexpr int64_t kReplayRows = 64, kLeastReplayRows = 24;
// Sessions of a source that are looked at together, and how many of its calls one may let pass.
constexpr size_t kLookedAt = 8;
constexpr int64_t kIdleCalls = 64;
// After so many a session makes room for another one's; it may come back at once.
constexpr int32_t kVotesOfATurn = 4;
constexpr size_t kMaxReplays = 4;

}  // namespace

SessionWatch::SessionWatch(WiringGuard& guard, SourceWatch& source, int64_t id, absl::Time now,
                           bool fused)
    : guard_(guard), source_(source), id_(id), fused_(fused), now_(now) {}

SessionWatch::~SessionWatch() {
  StopLooking();
  if (collected_.has_value()) AskForReplay(kLeastReplayRows);
  guard_.EndSession(source_, now_);
}

void SessionWatch::OnRows(int64_t base_length, absl::Span<const int32_t> tokens,
                          const HiddenRows& rows, absl::Time now) {
  AERIE_CHECK(static_cast<int64_t>(tokens.size()) == rows.rows()) << tokens.size();
  if (rows.empty()) return;
  now_ = now;
  source_.CountCall(rows.rows());
  last_call_ = source_.calls();
  if (fused_) return;
  if (base_length != next_row_) last_tokens_.clear();
  const std::optional<GuardProfile>& profile = guard_.options_.profile;
  if (profile.has_value() &&
      rows.width() == profile->hidden_size * static_cast<int64_t>(profile->places.size()) &&
      LookedAt()) {
    Sample(base_length, tokens, rows);
    Vote();
  }
  if (collected_.has_value() || (source_.WantsReplay() && guard_.replays_.size() < kMaxReplays)) {
    Collect(base_length, tokens, rows);
  }
  for (const int32_t token : tokens.last(std::min<size_t>(tokens.size(), 2))) {
    last_tokens_.push_back(token);
  }
  if (last_tokens_.size() > 2) last_tokens_.erase(last_tokens_.begin(), last_tokens_.end() - 2);
  next_row_ = base_length + rows.rows();
}

bool SessionWatch::LookedAt() {
  if (sketch_ != nullptr) return true;
  std::vector<SessionWatch*>& others = source_.looked_at();
  if (others.size() >= kLookedAt) {
    SessionWatch* idle = *std::min_element(
        others.begin(), others.end(),
        [](const auto* a, const auto* b) { return a->last_call_ < b->last_call_; });
    if (last_call_ - idle->last_call_ < kIdleCalls) return false;
    idle->StopLooking();
  }
  others.push_back(this);
  sketch_ = std::make_unique<RowSketch>(*guard_.options_.profile);
  votes_ = 0;
  return true;
}

void SessionWatch::StopLooking() {
  if (sketch_ == nullptr) return;
  // Short sessions have their say as well.
  const WiringState before = source_.state();
  if (sketch_->rows() > 0 && source_.AddRest(*sketch_, id_, now_)) guard_.Voted(source_, before);
  sketch_.reset();
  std::vector<SessionWatch*>& looked_at = source_.looked_at();
  looked_at.erase(std::find(looked_at.begin(), looked_at.end(), this));
}

void SessionWatch::Sample(int64_t base_length, absl::Span<const int32_t> tokens,
                          const HiddenRows& rows) {
  const int64_t stride = std::max(kStride, (rows.rows() + kMostOfACall - 1) / kMostOfACall);
  // From the end: the last row is the newest, and of a short call the only one looked at.
  for (int64_t row = rows.rows() - 1; row >= 0; row -= stride) {
    if (base_length + row < kFirstComparedPosition) break;
    const auto token = [&](int64_t index) -> std::optional<int32_t> {
      if (index >= 0) return tokens[static_cast<size_t>(index)];
      const auto back = static_cast<size_t>(-index);
      if (back > last_tokens_.size()) return std::nullopt;
      return last_tokens_[last_tokens_.size() - back];
    };
    const std::optional<int32_t> before = token(row - 1), earlier = token(row - 2);
    std::optional<TokenKeys> keys;
    if (before.has_value() && earlier.has_value()) {
      keys = TokenKeys{tokens[static_cast<size_t>(row)], *before, *earlier};
    }
    sketch_->Add(rows, row, keys);
  }
}

void SessionWatch::Vote() {
  if (sketch_->rows() < guard_.options_.thresholds.rows_per_vote) return;
  RowVote vote = sketch_->Take();
  vote.session = id_;
  const WiringState before = source_.state();
  if (source_.AddVote(std::move(vote), now_)) guard_.Voted(source_, before);
  if (++votes_ >= kVotesOfATurn) StopLooking();
}

void SessionWatch::Collect(int64_t base_length, absl::Span<const int32_t> tokens,
                           const HiddenRows& rows) {
  const bool continues = collected_.has_value() && base_length == next_row_ &&
                         collected_->width == rows.width() && collected_->dtype == rows.dtype();
  if (!continues) {
    collected_ = ReplayRequest{.base_length = base_length,
                               .orders = CandidateOrders(guard_.options_.captures),
                               .dtype = rows.dtype(),
                               .width = rows.width()};
    source_.set_collecting(true);
  }
  const int64_t missing = kReplayRows - static_cast<int64_t>(collected_->tokens.size());
  const int64_t taken = std::min(missing, rows.rows());
  const absl::Span<const int32_t> first = tokens.first(static_cast<size_t>(taken));
  collected_->tokens.insert(collected_->tokens.end(), first.begin(), first.end());
  collected_->bytes.append(rows.Slice(0, taken).bytes());
  if (taken == missing) AskForReplay(kReplayRows);
}

void SessionWatch::AskForReplay(int64_t least_rows) {
  if (static_cast<int64_t>(collected_->tokens.size()) >= least_rows) {
    collected_->id = ++guard_.next_id_;
    // Older ones of the source that nobody answered.
    std::erase_if(guard_.asked_, [this](const auto& asked) { return asked.second == &source_; });
    guard_.asked_[collected_->id] = &source_;
    guard_.replays_.push_back(*std::move(collected_));
    source_.NoteReplayAsked();
  }
  collected_.reset();
  source_.set_collecting(false);
}

void SessionWatch::OnScores(absl::Span<const float> log_probs, int64_t hits) {
  source_.AddScores(log_probs, hits);
}

void SessionWatch::OnJudgement(int32_t proposed, int32_t accepted,
                               std::optional<int32_t> worker_accepted, absl::Time now) {
  const WiringState before = source_.state();
  if (source_.AddJudgement(proposed, accepted, worker_accepted, now)) {
    guard_.Publish(source_, before);
  }
}

}  // namespace aerie
