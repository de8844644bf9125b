// Whether adaptive k is worth it, in simulated sessions: close to the best fixed k, which nobody
// knows beforehand, when the load stays; better than every fixed k when it changes.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "tests/server/engine/draft_load.h"
#include "tests/testing/marked_table.h"

namespace aerie {
namespace {

constexpr int kSeeds = 3;
constexpr double kVerify = 20;  // milliseconds, without a draft

std::function<double(int32_t)> Line(double slope, double base = kVerify) {
  return [=](int32_t k) { return base + slope * k; };
}

std::function<double(int32_t)> Knee(int32_t at, double slope) {
  return [=](int32_t k) { return kVerify + slope * std::max(0, k - at); };
}

struct Named {
  std::string name;
  std::vector<double> rates;
};

const std::vector<Named>& AcceptanceProfiles() {
  static const auto* profiles = new std::vector<Named>{
      {"0.9 everywhere", {0.9}},
      {"0.7 everywhere", {0.7}},
      {"0.4 everywhere", {0.4}},
      {"0.1 everywhere", {0.1}},
      {"0.85 falling to 0.35", {0.85, 0.75, 0.65, 0.55, 0.45, 0.35}},
      {"0.3, then 0.9", {0.3, 0.9}},
      {"0.9 to depth 3, then 0.05", {0.9, 0.9, 0.9, 0.05}},
  };
  return *profiles;
}

const std::vector<std::pair<std::string, std::function<double(int32_t)>>>& VerifyCosts() {
  static const auto* costs =
      new std::vector<std::pair<std::string, std::function<double(int32_t)>>>{
          {"20 ms", Line(0)},
          {"20 ms + 0.4 a token", Line(0.4)},
          {"20 ms + 2 a token", Line(2)},
          {"20 ms + 8 a token", Line(8)},
          {"20 ms, above 4 tokens + 6 each", Knee(4, 6)},
          {"20 ms, above 8 tokens + 10 each", Knee(8, 10)},
      };
  return *costs;
}

DraftLoad Load(const std::vector<double>& rates, double step,
               const std::function<double(int32_t)>& verify) {
  return {.rates = rates, .extend = 1.5 * step, .step = step, .verify = verify};
}

Outcome MeanOutcome(const std::vector<Stretch>& stretches, int32_t max_k) {
  Outcome mean;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const Outcome outcome = RunSession(stretches, max_k, seed);
    mean.goodput += outcome.goodput / kSeeds;
    mean.rounds += outcome.rounds;
    mean.exploring += outcome.exploring;
    mean.mean_k += outcome.mean_k / kSeeds;
  }
  return mean;
}

// A draft step of 0.2, 1 and 5 ms and limits of 8 and 16 for each pair of profile and cost; the
// table shows the worst of these six.
TEST(AdaptiveKSimulationTest, ComesWithinFivePercentOfTheBestFixedKOnLoadsThatStay) {
  std::string table =
      "| acceptance by depth | verification | worst of the best fixed k | best k there | mean k | "
      "exploring |\n|---|---|---|---|---|---|\n";
  double sum = 0;
  int loads = 0;
  for (const Named& profile : AcceptanceProfiles()) {
    for (const auto& [cost_name, cost] : VerifyCosts()) {
      double worst = 2;
      std::string row;
      for (const int32_t max_k : {8, 16}) {
        for (const double step : {0.2, 1.0, 5.0}) {
          const DraftLoad load = Load(profile.rates, step, cost);
          const FixedK best = BestFixedK(load, max_k);
          const Outcome outcome = MeanOutcome({{load, 10000}}, max_k);
          const double ratio = outcome.goodput / best.goodput;
          EXPECT_GE(ratio, 0.95) << profile.name << ", " << cost_name << ", step " << step
                                 << ", max_k " << max_k;
          sum += ratio;
          ++loads;
          if (!(ratio < worst)) continue;
          worst = ratio;
          row = absl::StrFormat(
              "| %s | %s | %.3f | %d | %.1f | %.0f %% |\n", profile.name, cost_name, ratio, best.k,
              outcome.mean_k,
              100.0 * static_cast<double>(outcome.exploring) / static_cast<double>(outcome.rounds));
        }
      }
      absl::StrAppend(&table, row);
    }
  }
  absl::StrAppendFormat(&table, "| mean of all %d loads | | %.3f | | | |\n", loads, sum / loads);
  EXPECT_GE(sum / loads, 0.97);
  EXPECT_TRUE(PutTable("stationary-loads", table));
}

struct Change {
  std::string name;
  std::vector<DraftLoad> loads;
};

std::vector<Change> Changes() {
  // A load that grows and shrinks little by little.
  std::vector<DraftLoad> drift;
  for (const double slope : {0.1, 0.5, 2.0, 6.0, 15.0, 6.0, 2.0, 0.5}) {
    drift.push_back(Load({0.8}, 1, Line(slope)));
  }
  return {
      {"text: acceptance 0.9, then 0.1", {Load({0.9}, 1, Line(2)), Load({0.1}, 1, Line(2))}},
      {"text: acceptance 0.8, then 0.3", {Load({0.8}, 1, Line(1)), Load({0.3}, 1, Line(1))}},
      {"target: 0.1, then 15 ms a token", {Load({0.8}, 1, Line(0.1)), Load({0.8}, 1, Line(15))}},
      {"target: 20 + 0.5, then 30 + 20 ms a token",
       {Load({0.75}, 2, Line(0.5)), Load({0.75}, 2, Line(20, 30))}},
      {"target: 0.1 up to 15 ms a token and back, in 8 stretches", drift},
      {"drafter: 0.5, then 15 ms a step",
       {Load({0.8}, 0.5, Line(0.5)), Load({0.8}, 15, Line(0.5))}},
      {"all three at once",
       {Load({0.9}, 0.5, Line(0.5)), Load({0.6}, 8, Line(6)), Load({0.2}, 1, Line(12, 30))}},
  };
}

TEST(AdaptiveKSimulationTest, BeatsEveryFixedKOnLoadsThatChange) {
  std::string table =
      "| what changes | best fixed k | of its goodput | knowing each load |\n|---|---|---|---|\n";
  for (const Change& change : Changes()) {
    std::vector<Stretch> session;
    for (int time = 0; time < 4; ++time) {
      for (const DraftLoad& load : change.loads) session.push_back({load, 2000});
    }
    const FixedK best = BestFixedK(session, 16);
    double tokens = 0, milliseconds = 0;
    for (const Stretch& stretch : session) {
      tokens += static_cast<double>(stretch.tokens);
      milliseconds += static_cast<double>(stretch.tokens) / BestFixedK(stretch.load, 16).goodput;
    }
    const double ratio = MeanOutcome(session, 16).goodput / best.goodput;
    EXPECT_GT(ratio, 1) << change.name;
    absl::StrAppendFormat(&table, "| %s | %d | %.3f | %.3f |\n", change.name, best.k, ratio,
                          tokens / milliseconds / best.goodput);
  }
  EXPECT_TRUE(PutTable("changing-loads", table));
}

}  // namespace
}  // namespace aerie
