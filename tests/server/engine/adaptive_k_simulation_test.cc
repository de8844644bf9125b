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

constexpr uint32_t kSessions = 3;  // of each long one
constexpr double kVerify = 20;     // milliseconds, without a draft

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

Outcome RunSessions(const std::vector<Stretch>& stretches, int32_t max_k, uint32_t count) {
  Outcome outcome;
  for (uint32_t seed = 0; seed < count; ++seed) RunSession(stretches, max_k, seed, &outcome);
  return outcome;
}

struct NamedLoad {
  std::string profile, cost;
  int32_t max_k = 0;
  DraftLoad load;
};

// Every profile with every cost, each with a draft step of 0.2, 1 and 5 ms and limits of 8 and 16.
std::vector<NamedLoad> Loads() {
  std::vector<NamedLoad> loads;
  for (const Named& profile : AcceptanceProfiles()) {
    for (const auto& [cost_name, cost] : VerifyCosts()) {
      for (const int32_t max_k : {8, 16}) {
        for (const double step : {0.2, 1.0, 5.0}) {
          loads.push_back({profile.name, cost_name, max_k, Load(profile.rates, step, cost)});
        }
      }
    }
  }
  return loads;
}
constexpr size_t kLoadsOfAPair = 6;

TEST(AdaptiveKSimulationTest, ComesWithinFivePercentOfTheBestFixedKOnLoadsThatStay) {
  std::string table =
      "| acceptance by depth | verification | worst of the best fixed k | best k there | mean k | "
      "exploring |\n|---|---|---|---|---|---|\n";
  double sum = 0, worst = 2;
  std::string worst_row;
  const std::vector<NamedLoad> loads = Loads();
  for (size_t i = 0; i < loads.size(); ++i) {
    const auto& [profile, cost, max_k, load] = loads[i];
    const FixedK best = BestFixedK(load, max_k);
    const Outcome outcome = RunSessions({{load, 10000}}, max_k, kSessions);
    const double ratio = outcome.Goodput() / best.goodput;
    EXPECT_GE(ratio, 0.95) << profile << ", " << cost << ", step " << load.step << ", max_k "
                           << max_k;
    sum += ratio;
    if (i % kLoadsOfAPair == 0) worst = 2;
    if (ratio < worst) {
      worst = ratio;
      worst_row = absl::StrFormat("| %s | %s | %.3f | %d | %.1f | %.0f %% |\n", profile, cost,
                                  ratio, best.k, outcome.MeanK(), 100 * outcome.ExploringPart());
    }
    if (i % kLoadsOfAPair == kLoadsOfAPair - 1) absl::StrAppend(&table, worst_row);
  }
  const double mean = sum / static_cast<double>(loads.size());
  absl::StrAppendFormat(&table, "| mean of all %d loads | | %.3f | | | |\n", loads.size(), mean);
  EXPECT_GE(mean, 0.97);
  EXPECT_TRUE(PutTable("stationary-loads", table));
}

// What a session pays for learning, of which every session does its own.
TEST(AdaptiveKSimulationTest, LearnsFastEnoughForASession) {
  std::string table = "| tokens of the session | mean | worst |\n|---|---|---|\n";
  const std::vector<NamedLoad> loads = Loads();
  for (const int64_t tokens : {100, 300, 1000, 3000}) {
    double sum = 0, worst = 1;
    for (const NamedLoad& named : loads) {
      // As many sessions as it takes for luck not to matter.
      const auto sessions = static_cast<uint32_t>(6000 / tokens);
      const Outcome outcome = RunSessions({{named.load, tokens}}, named.max_k, sessions);
      const double ratio = outcome.Goodput() / BestFixedK(named.load, named.max_k).goodput;
      sum += ratio;
      worst = std::min(worst, ratio);
    }
    const double mean = sum / static_cast<double>(loads.size());
    absl::StrAppendFormat(&table, "| %d | %.3f | %.3f |\n", tokens, mean, worst);
    if (tokens >= 1000) {
      EXPECT_GE(mean, 0.95) << tokens;
    }
  }
  EXPECT_TRUE(PutTable("young-sessions", table));
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
    const double ratio = RunSessions(session, 16, kSessions).Goodput() / best.goodput;
    EXPECT_GT(ratio, 1) << change.name;
    absl::StrAppendFormat(&table, "| %s | %d | %.3f | %.3f |\n", change.name, best.k, ratio,
                          tokens / milliseconds / best.goodput);
  }
  EXPECT_TRUE(PutTable("changing-loads", table));
}

}  // namespace
}  // namespace aerie
