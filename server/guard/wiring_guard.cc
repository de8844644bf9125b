#include "server/guard/wiring_guard.h"

#include <utility>

#include "common/check.h"

namespace aerie {
namespace {

constexpr size_t kMaxSources = 256;

}  // namespace

WiringGuard::WiringGuard(GuardOptions options) : options_(std::move(options)) {
  AERIE_CHECK(options_.captures > 0) << options_.captures;
  AERIE_CHECK(!options_.profile.has_value() ||
              static_cast<int32_t>(options_.profile->places.size()) == options_.captures)
      << "a profile of another wiring";
}

WiringGuard::~WiringGuard() = default;

std::unique_ptr<SessionWatch> WiringGuard::Watch(const std::string& client,
                                                 const std::string& target, absl::Time now,
                                                 bool fused) {
  Forget(now);
  DropForgotten();
  SourceKey key(client, fused ? target + " (fused)" : target);
  if (sources_.size() >= kMaxSources && sources_.count(key) == 0) key = {"(others)", ""};
  std::unique_ptr<SourceWatch>& source = sources_[key];
  if (source == nullptr) {
    source = std::make_unique<SourceWatch>(
        SourceWatch::Setup{.client = key.first,
                           .target = key.second,
                           .profile = options_.profile.has_value() ? &*options_.profile : nullptr,
                           .captures = options_.captures,
                           .thresholds = options_.thresholds,
                           .replay = options_.replay,
                           .fused = fused});
  }
  {
    const MutexLock lock(&mutex_);
    const auto [place, added] = published_.try_emplace(key);
    ++place->second.sessions;
    if (added) {
      place->second.report = source->Report();
      TellSummary();
    }
  }
  return std::unique_ptr<SessionWatch>(new SessionWatch(*this, *source, ++next_id_, now, fused));
}

void WiringGuard::EndSession(const SourceWatch& source, absl::Time last_call) {
  const MutexLock lock(&mutex_);
  Published& published = published_.at({source.client(), source.target()});
  --published.sessions;
  published.idle_since = last_call;
  // No vote will ever bring its counts up to date.
  if (source.fused()) published.report = source.Report();
}

void WiringGuard::Forget(absl::Time now) {
  const MutexLock lock(&mutex_);
  const size_t forgotten = std::erase_if(published_, [&](const auto& source) {
    const Published& published = source.second;
    return published.sessions == 0 && published.idle_since + options_.forget_after <= now;
  });
  if (forgotten > 0) TellSummary();
}

void WiringGuard::DropForgotten() {
  const MutexLock lock(&mutex_);
  if (published_.size() == sources_.size()) return;
  std::erase_if(asked_, [this](const auto& asked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return published_.count({asked.second->client(), asked.second->target()}) == 0;
  });
  std::erase_if(sources_, [this](const auto& source) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return published_.count(source.first) == 0;
  });
}

std::optional<ReplayRequest> WiringGuard::TakeReplay() {
  // Of those in whose place another one of the same source was asked for the answer has no use.
  while (!replays_.empty() && asked_.count(replays_.front().id) == 0) replays_.pop_front();
  if (replays_.empty()) return std::nullopt;
  ReplayRequest request = std::move(replays_.front());
  replays_.pop_front();
  return request;
}

void WiringGuard::OnReplay(const ReplayScores& scores, absl::Time now) {
  const auto asked = asked_.find(scores.id);
  if (asked == asked_.end()) return;
  SourceWatch& source = *asked->second;
  asked_.erase(asked);
  const WiringState before = source.state();
  if (source.AddReplay(scores, now)) Publish(source, before);
}

void WiringGuard::Voted(const SourceWatch& source, WiringState before) {
  if (options_.observer != nullptr) options_.observer->OnVote(source.last_outcome());
  Publish(source, before);
}

void WiringGuard::Publish(const SourceWatch& source, WiringState before) {
  const WiringReport report = source.Report();
  {
    const MutexLock lock(&mutex_);
    const auto place = published_.find({report.client, report.target});
    if (place == published_.end()) return;  // a replay's answer, after it was forgotten
    place->second.report = report;
    TellSummary();
  }
  if (report.state == before) return;
  if (options_.observer != nullptr) options_.observer->OnState(report.state);
  if (options_.on_change) options_.on_change(report, before);
}

void WiringGuard::TellSummary() {
  WiringSummary summary;
  const WiringReport* worst = nullptr;
  for (const auto& [key, published] : published_) {
    const WiringReport& report = published.report;
    ++summary.sources.at(static_cast<size_t>(report.state));
    if (worst == nullptr || IsWorse(report.state, worst->state)) worst = &report;
  }
  if (worst != nullptr) {
    summary.worst = worst->state;
    for (const PlaceReport& place : worst->places) summary.positions.push_back(place.position);
  }
  if (options_.observer != nullptr) options_.observer->OnSummary(summary);
  if (summary.worst != std::exchange(told_worst_, summary.worst) && options_.on_worst) {
    options_.on_worst(summary.worst);
  }
}

std::vector<WiringReport> WiringGuard::Reports() const {
  const MutexLock lock(&mutex_);
  std::vector<WiringReport> reports;
  for (const auto& [source, published] : published_) reports.push_back(published.report);
  return reports;
}

WiringState WiringGuard::WorstState() const {
  const MutexLock lock(&mutex_);
  return told_worst_;
}

}  // namespace aerie
