#include "tests/cuda/benchmark/pass_times.h"

#include <algorithm>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/benchmarks/bench_sequences.h"

namespace aerie {
namespace {

double Seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Times {
  std::vector<double> seconds;
  double LeastMicros() const { return *std::min_element(seconds.begin(), seconds.end()) * 1e6; }
  double MedianMicros() const {
    std::vector<double> sorted = seconds;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    return sorted[sorted.size() / 2] * 1e6;
  }
};

}  // namespace

// Draft steps with graphs and without, in turns.
nlohmann::json StepTimes(Drafter& drafter, int64_t step_bytes, double bytes_per_second,
                         const PassTimesOptions& options, Budget& budget) {
  nlohmann::json steps = nlohmann::json::array();
  for (const int64_t context : options.contexts) {
    for (const int64_t batch : options.batches) {
      if (!budget.Allows(absl::StrCat("step: context ", context, ", batch ", batch))) continue;
      BenchSequences sequences(*drafter.model, batch, context);
      std::map<bool, Times> times;
      for (int32_t round = 0; round <= options.rounds; ++round) {
        for (const bool graphs : {true, false}) {
          drafter.net->set_recording(graphs);
          for (int32_t i = 0; i < std::max(options.repeats, 2); ++i) {
            sequences.ExtendLast();
            const double took = Seconds([&] { sequences.DraftOnce(); });
            // The first round records, and wakes the device.
            if (round > 0) times[graphs].seconds.push_back(took);
          }
        }
      }
      const auto kv_bytes = static_cast<double>(batch * context * drafter.net->kv_shape().layers *
                                                drafter.net->kv_shape().row_bytes());
      const double floor = static_cast<double>(step_bytes) / bytes_per_second * 1e6;
      const double with_kv = floor + kv_bytes / bytes_per_second * 1e6;
      for (const bool graphs : {true, false}) {
        const double least = times[graphs].LeastMicros();
        steps.push_back({{"context", context},
                         {"batch", batch},
                         {"graphs", graphs},
                         {"step_us", least},
                         {"step_median_us", times[graphs].MedianMicros()},
                         {"floor_us", floor},
                         {"floor_with_kv_us", with_kv},
                         {"step_over_floor", least / floor},
                         {"step_over_floor_with_kv", least / with_kv}});
      }
    }
  }
  drafter.net->set_recording(true);
  return steps;
}

nlohmann::json ExtendTimes(Drafter& drafter, const HeadWork& work, double product_rate,
                           const PassTimesOptions& options, Budget& budget) {
  nlohmann::json extends = nlohmann::json::array();
  constexpr int64_t kContext = 128;
  BenchSequences sequences(*drafter.model, 1, std::min(kContext, options.contexts.front()));
  for (const int64_t rows : options.extends) {
    if (!budget.Allows(absl::StrCat("extend: ", rows, " rows"))) continue;
    Times times;
    sequences.Extend(rows);
    for (int32_t i = 0; i < options.rounds; ++i)
      times.seconds.push_back(Seconds([&] { sequences.Extend(rows); }));
    const double rate = 2.0 *
                        static_cast<double>(rows * work.prompt_elements + work.step_elements) /
                        times.LeastMicros() * 1e6;
    extends.push_back({{"rows", rows},
                       {"us", times.LeastMicros()},
                       {"median_us", times.MedianMicros()},
                       {"tflops", rate * 1e-12},
                       {"of_product", rate / product_rate}});
  }
  return extends;
}

}  // namespace aerie
