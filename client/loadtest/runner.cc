#include "client/loadtest/runner.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace aerie::loadtest {
namespace {

constexpr absl::Duration kLiveInterval = absl::Seconds(1);
// Between two sessions of a worker whose server is away.
constexpr absl::Duration kAwayPause = absl::Milliseconds(100);

int64_t SessionsToRun(const LoadOptions& options, const Workload& workload) {
  if (options.duration.has_value()) return std::numeric_limits<int64_t>::max();
  return options.requests.value_or(workload.size() > 0 ? workload.size() : options.sessions);
}

int64_t RoundsOfASession(const LoadOptions& options, const Workload& workload) {
  // A recorded sequence has an end of its own.
  return options.rounds.value_or(workload.size() > 0 ? 0 : LoadOptions::kDefaultRounds);
}

absl::Duration CpuTime() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

}  // namespace

Runner::Runner(const LoadOptions& options, DraftClient* client, const Workload* workload)
    : options_(options),
      client_(client),
      workload_(workload),
      requests_(SessionsToRun(options, *workload)) {
  plan_.k = options_.TokensPerRound();
  plan_.session = options_.SessionOptionsOf();
  plan_.verify_time = options_.verify_time;
  plan_.rounds = RoundsOfASession(options_, *workload_);
  plan_.stopped = [this] { return stopped_.load(std::memory_order_relaxed); };
  const int64_t workers = std::min<int64_t>(options_.sessions, requests_);
  for (int64_t i = 0; i < workers; ++i) stats_.push_back(std::make_unique<WorkerStats>());
}

void Runner::Work(WorkerStats* stats) {
  while (!plan_.stopped() && absl::Now() < plan_.window.end) {
    const int64_t number = next_number_.fetch_add(1, std::memory_order_relaxed);
    if (number >= requests_) return;
    if (!RunSession(*client_, *workload_, number, plan_, stats)) absl::SleepFor(kAwayPause);
  }
}

LiveSample Runner::TakeSample(absl::Time start, absl::Time* last) {
  LiveSample sample;
  const absl::Time now = absl::Now();
  sample.since_start = now - start;
  sample.interval = now - std::exchange(*last, now);
  for (const auto& stats : stats_) {
    absl::MutexLock lock(&stats->mutex);
    sample.rounds.Merge(std::exchange(stats->recent_rounds, Histogram()));
    sample.acceptance.Merge(std::exchange(stats->recent_acceptance, AcceptanceTally()));
    sample.tokens += std::exchange(stats->recent_tokens, 0);
    sample.errors += stats->whole.error_count();
  }
  return sample;
}

RunResult Runner::Run(const std::function<void(const LiveSample&)>& live) {
  RunResult result;
  const absl::Duration cpu_before = CpuTime();
  result.started = absl::Now();
  plan_.window.begin = result.started + options_.warmup;
  if (options_.duration.has_value()) plan_.window.end = result.started + *options_.duration;

  absl::Notification finished;
  std::thread reporter([&] {
    absl::Time last = result.started;
    while (live && !finished.WaitForNotificationWithTimeout(kLiveInterval)) {
      live(TakeSample(result.started, &last));
    }
  });
  std::vector<std::thread> workers;
  for (const auto& stats : stats_) workers.emplace_back([this, &stats] { Work(stats.get()); });
  for (std::thread& worker : workers) worker.join();
  finished.Notify();
  reporter.join();

  const absl::Time end = absl::Now();
  const absl::Duration ran = end - result.started;
  result.seconds =
      std::max(absl::ZeroDuration(), std::min(end, plan_.window.end) - plan_.window.begin);
  result.tester_cpu_share = absl::FDivDuration(CpuTime() - cpu_before, ran) /
                            static_cast<double>(std::max(1u, std::thread::hardware_concurrency()));
  for (const auto& stats : stats_) {
    absl::MutexLock lock(&stats->mutex);
    result.measured.Merge(stats->measured);
    result.whole.Merge(stats->whole);
  }
  return result;
}

}  // namespace aerie::loadtest
