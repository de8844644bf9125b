// aerie-step-benchmark: how long a pass of a drafter takes, beside how long the same bytes take to
// read, as JSON on stdout.
//
// What a reader would get wrong: every time is the least of many, since other programs only ever
// add to it, and what is compared is measured in turns within one run. Batches of one sequence's
// copies read the same rows of weights and other rows of KV.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/checkpoint/checkpoint.h"
#include "server/inspect/checkpoint_flags.h"
#include "server/model/cpu_budget.h"
#include "server/model/eagle3_model.h"
#include "tests/benchmarks/bandwidth.h"
#include "tests/benchmarks/bench_sequences.h"
#include "tests/benchmarks/head_work.h"

namespace aerie {
namespace {

struct Flags {
  std::string drafter, target, dtype = "bfloat16";
  int32_t threads = 1;  // 0: the model does as a server without --threads
  int32_t MostThreads() const { return threads > 0 ? threads : FindCpuBudget().threads; }

  int32_t rounds = 6, repeats = 8;
  std::vector<int64_t> contexts = {128, 2048, 8192}, batches = {1, 4, 8, 32};
  std::vector<int64_t> extends = {1, 3, 512};
  int64_t kv_memory = int64_t{2} << 30;
  CheckpointOptions checkpoint;
};

double Seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The times of something that is measured in turns with others.
class Times {
 public:
  void Add(double seconds) { seconds_.push_back(seconds); }
  double Least() const { return *std::min_element(seconds_.begin(), seconds_.end()); }
  double Median() const {
    std::vector<double> sorted = seconds_;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  std::vector<double> seconds_;
};

int64_t StepBytes(const HeadWork& work, const std::string& dtype) {
  if (dtype == "int8") return work.step_elements + 4 * work.step_channels;
  return work.step_elements * (dtype == "bfloat16" ? 2 : 4);
}

std::string SettingOf(const DrafterSpec& spec, const std::string& name) {
  for (const Setting& setting : spec.settings) {
    if (setting.name == name) return setting.value;
  }
  return {};
}

// Products a second, of two large float32 matrices.
double PeakFlops(int32_t threads, int32_t rounds) {
  constexpr int64_t kSize = 1536;
  at::set_num_threads(threads);
  const at::Tensor a = at::randn({kSize, kSize}), b = at::randn({kSize, kSize});
  Times times;
  for (int32_t i = 0; i < rounds; ++i) times.Add(Seconds([&] { at::mm(a, b); }));
  return 2.0 * kSize * kSize * kSize / times.Least();
}

nlohmann::json MeasureSteps(DraftModel& model, BandwidthProbe& probe, const Flags& flags) {
  nlohmann::json steps = nlohmann::json::array();
  for (const int64_t context : flags.contexts) {
    for (const int64_t batch : flags.batches) {
      BenchSequences sequences(model, batch, context);
      Times reads, times;
      for (int32_t round = 0; round < flags.rounds; ++round) {
        for (int32_t i = 0; i < flags.repeats; ++i) reads.Add(Seconds([&] { probe.Read(); }));
        for (int32_t i = 0; i < flags.repeats; ++i) {
          sequences.ExtendLast();
          times.Add(Seconds([&] { sequences.DraftOnce(); }));
        }
      }
      steps.push_back({{"context", context},
                       {"batch", batch},
                       {"step_us", times.Least() * 1e6},
                       {"step_median_us", times.Median() * 1e6},
                       {"read_us", reads.Least() * 1e6},
                       {"read_median_us", reads.Median() * 1e6}});
    }
  }
  return steps;
}

nlohmann::json MeasureExtends(DraftModel& model, const HeadWork& work, const Flags& flags) {
  nlohmann::json extends = nlohmann::json::array();
  constexpr int64_t kContext = 128;
  BenchSequences sequences(model, 1, kContext);
  for (const int64_t rows : flags.extends) {
    Times times;
    double peak = 0.0;
    for (int32_t round = 0; round < flags.rounds; ++round) {
      for (int32_t i = 0; i < std::max(2, flags.repeats / 2); ++i)
        times.Add(Seconds([&] { sequences.Extend(rows); }));
      if (rows >= 64) peak = std::max(peak, PeakFlops(flags.MostThreads(), 2));
    }
    const double operations =
        2.0 * static_cast<double>(rows * work.prompt_elements + work.step_elements);
    nlohmann::json entry = {
        {"rows", rows}, {"us", times.Least() * 1e6}, {"gflops", operations / times.Least() * 1e-9}};
    if (peak > 0.0) {
      entry["peak_gflops"] = peak * 1e-9;
      entry["of_peak"] = operations / times.Least() / peak;
    }
    extends.push_back(std::move(entry));
  }
  return extends;
}

absl::Status Run(const Flags& flags) {
  const c10::InferenceMode no_gradients;
  const auto checkpoint = LoadCheckpoint(flags.drafter, flags.target, flags.checkpoint);
  if (!checkpoint.ok()) return checkpoint.status();
  static const std::map<std::string, ComputeDType> dtypes = {{"float32", ComputeDType::kFloat32},
                                                             {"bfloat16", ComputeDType::kBFloat16},
                                                             {"int8", ComputeDType::kInt8}};
  absl::StatusOr<std::unique_ptr<DraftModel>> model;
  const double load_seconds = Seconds([&] {
    model = LoadEagle3Model(*checkpoint, {.dtype = dtypes.at(flags.dtype),
                                          .threads = flags.threads,
                                          .kv_memory_bytes = flags.kv_memory});
  });
  if (!model.ok()) return model.status();
  const HeadWork work = WorkOf(*checkpoint);
  const int64_t bytes = StepBytes(work, flags.dtype);
  ThreadPool pool(flags.MostThreads());
  BandwidthProbe probe(bytes, pool);
  nlohmann::json out = {{"drafter", (*model)->spec().name},
                        {"dtype", flags.dtype},
                        {"threads", flags.threads},
                        {"compute_path", SettingOf((*model)->spec(), "compute_path")},
                        {"load_seconds", load_seconds},
                        {"step_bytes", bytes},
                        {"read_bytes", probe.bytes()}};
  out["steps"] = MeasureSteps(**model, probe, flags);
  out["extends"] = MeasureExtends(**model, work, flags);
  std::cout << out.dump(1) << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace aerie

int main(int argc, char** argv) {
  CLI::App app("Times the passes of a drafter and the reading of as many bytes; prints JSON.",
               "aerie-step-benchmark");
  aerie::Flags flags;
  app.add_option("--drafter", flags.drafter, "folder of the head")->required();
  app.add_option("--target", flags.target, "folder of its target")->required();
  app.add_option("--dtype", flags.dtype, "float32, bfloat16 or int8")
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}))
      ->capture_default_str();
  app.add_option("--threads", flags.threads,
                 "of the model and of the reading, 0..1024; 0: of the model what a pass is worth, "
                 "of the reading all CPUs")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--rounds", flags.rounds, "turns of each pair that is compared")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--repeats", flags.repeats, "measurements of one turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--contexts", flags.contexts, "rows in front of a draft step")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--batches", flags.batches, "sequences of a draft step")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--extends", flags.extends, "rows of an extend, 1..512")
      ->delimiter(',')
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  app.add_option("--kv-memory", flags.kv_memory, "bytes of draft KV")->capture_default_str();
  aerie::AddCheckpointFlags(app, flags.checkpoint);
  CLI11_PARSE(app, argc, argv);
  if (const absl::Status status = aerie::Run(flags); !status.ok()) {
    std::cerr << "aerie-step-benchmark: " << status.message() << "\n";
    return 1;
  }
  return 0;
}
