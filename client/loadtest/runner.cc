#include "client/loadtest/runner.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/loadtest/cpu_time.h"

namespace aerie::loadtest {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(1);
// Between two sessions of a worker whose server is away.
constexpr absl::Duration kAwayPause = absl::Milliseconds(100);

int64_t SessionsToRun(const LoadOptions& options, const Workload& workload) {
  if (options.requests.has_value()) return *options.requests;
  if (options.total_rounds.has_value() || options.EndOfLoad() != absl::InfiniteDuration()) {
    return std::numeric_limits<int64_t>::max();
  }
  return workload.size() > 0 ? workload.size() : static_cast<int64_t>(options.sessions.MaxLevel());
}

int64_t RoundsOfASession(const LoadOptions& options, const Workload& workload) {
  // A recorded sequence has an end of its own.
  return options.rounds.value_or(workload.size() > 0 ? 0 : LoadOptions::kDefaultRounds);
}

double Share(absl::Duration part, absl::Duration whole) {
  return whole > absl::ZeroDuration() ? absl::FDivDuration(part, whole) : 0.0;
}

}  // namespace

Runner::Runner(const LoadOptions& options, std::vector<DraftClient*> clients,
               const Workload* workload, FaultInjector* faults, Clock* clock)
    : options_(options),
      clients_(std::move(clients)),
      workload_(workload),
      requests_(SessionsToRun(options, *workload)),
      gate_(options, clock) {
  plan_.k = options_.TokensPerRound();
  plan_.session = options_.SessionOptionsOf();
  plan_.verify_time = options_.verify_time;
  plan_.rounds = RoundsOfASession(options_, *workload_);
  plan_.goodput = options_.goodput;
  plan_.gate = &gate_;
  if (faults != nullptr) {
    plan_.beside_round = [faults](int64_t session, int64_t round, WorkerStats* stats) {
      faults->MaybeInject(session, round, &stats->mutex, &stats->whole);
    };
  }
  const auto most = static_cast<int64_t>(options_.sessions.MaxLevel());
  const int64_t workers = std::min(most, requests_);
  for (int64_t i = 0; i < workers; ++i) stats_.push_back(std::make_unique<WorkerStats>());
}

void Runner::Work(int32_t worker) {
  DraftClient& client = *clients_[static_cast<size_t>(worker) % clients_.size()];
  WorkerStats* const stats = stats_[static_cast<size_t>(worker)].get();
  while (gate_.WaitToOpen(worker)) {
    const int64_t number = next_number_.fetch_add(1, std::memory_order_relaxed);
    if (number >= requests_) break;
    if (!RunSession(client, *workload_, number, worker, plan_, stats)) absl::SleepFor(kAwayPause);
  }
  gate_.BeginDrain();
}

Interval Runner::TakeInterval(absl::Duration begin, HdrLog* log) {
  RecentStats recent;
  Interval out;
  for (const auto& stats : stats_) {
    absl::MutexLock lock(&stats->mutex);
    recent.Merge(std::exchange(stats->recent, RecentStats()));
    if (stats->in_flight.load(std::memory_order_relaxed)) ++out.in_flight;
  }
  const absl::Time from = gate_.start() + begin;
  const absl::Time now = gate_.clock().Now();
  out.begin = begin;
  out.length = now - from;
  out.steady = gate_.Counts(from, now);
  if (gate_.open_loop()) {
    out.asked = gate_.varying().AreaBefore(now - gate_.start()) - gate_.varying().AreaBefore(begin);
  }
  out.rounds = recent.round_intended.count();
  out.errors = recent.errors;
  out.tokens = recent.tokens;
  out.bytes = recent.bytes;
  out.accept_length = recent.acceptance.MeanAcceptLength();
  out.p50 = recent.round_intended.Quantile(0.5);
  out.p90 = recent.round_intended.Quantile(0.9);
  out.p99 = recent.round_intended.Quantile(0.99);
  out.max = recent.round_intended.max();
  out.send_p99 = recent.round.Quantile(0.99);
  if (!options_.hdr_path.empty() && out.rounds > 0) {
    log->Add("round-from-intended", begin, out.length, recent.round_intended);
    log->Add("round-from-send", begin, out.length, recent.round);
  }
  return out;
}

RunResult Runner::Run(const std::function<void(const Interval&)>& live) {
  RunResult result;
  const CpuTimes before = ReadCpuTimes();
  const absl::Time real_start = absl::Now();
  gate_.Begin();
  result.started = gate_.start();
  HdrLog log(result.started);

  absl::Notification finished;
  std::thread reporter([&] {
    absl::Duration begin;
    for (bool last = false; !last;) {
      last = finished.WaitForNotificationWithTimeout(kInterval);
      result.intervals.push_back(TakeInterval(begin, &log));
      const Interval& interval = result.intervals.back();
      begin += interval.length;
      if (live && !last) live(interval);
    }
  });
  std::vector<std::thread> workers;
  for (size_t i = 0; i < stats_.size(); ++i) {
    workers.emplace_back([this, i] { Work(static_cast<int32_t>(i)); });
  }
  for (std::thread& worker : workers) worker.join();
  finished.Notify();
  reporter.join();

  const absl::Time end = gate_.clock().Now();
  const CpuTimes after = ReadCpuTimes();
  result.ran = end - result.started;
  result.window_begin = options_.warmup;
  const absl::Time window_end = std::min(end, gate_.window_end());
  result.seconds = std::max(absl::ZeroDuration(), window_end - gate_.window_begin());
  if (gate_.open_loop()) {
    result.asked_rounds =
        gate_.StartsWithin(result.window_begin, result.window_begin + result.seconds);
  }
  result.tester_cpu = after.own - before.own;
  result.tester_cpu_share = Share(result.tester_cpu, absl::Now() - real_start) / ProcessorCount();
  result.machine_busy_share =
      Share(after.machine_busy - before.machine_busy, after.machine_all - before.machine_all);
  for (const auto& stats : stats_) {
    absl::MutexLock lock(&stats->mutex);
    result.measured.Merge(stats->measured);
    result.whole.Merge(stats->whole);
  }
  result.hdr_log = log.text();
  return result;
}

}  // namespace aerie::loadtest
