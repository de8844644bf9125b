// aerie-verify-power: how often aerie-verify comes to which verdict about planted wirings of the
// demo's head, by how many texts it is given. Prints the table of docs/wiring.md.
//
// Candidates are scored once, on all texts of a recording of all boundaries; verdicts are then
// reached on texts drawn from these, by the program's own tests and rules.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/check.h"
#include "server/checkpoint/checkpoint.h"
#include "server/model/eagle3_model.h"
#include "server/recording/recording.h"
#include "server/verify/candidate.h"
#include "server/verify/load_captures.h"
#include "server/verify/row_scoring.h"
#include "server/verify/statistics.h"
#include "server/verify/verdict.h"

namespace aerie {
namespace {

constexpr int kDraws = 200;
constexpr int kTexts[] = {8, 12, 24, 48};

struct Planted {
  std::string name;
  Candidate candidate;
};

struct Scored {
  Candidate candidate;
  RowScores scores;
};

// A recording of boundaries 0..30 and the final norm, in this order.
constexpr int32_t kFinalNorm = 31;
const Candidate kTruth{{2, 15, 27}, 0};

std::vector<Planted> PlantedWirings() {
  std::vector<Planted> planted = {{"nothing: 2, 15, 27", kTruth}};
  const auto add = [&planted](const char* what, std::vector<int32_t> tensors, int32_t shift = 0) {
    std::string name = what;
    for (const int32_t tensor : tensors) {
      absl::StrAppendFormat(&name, "%s%s", name.back() == ' ' ? "" : ", ",
                            tensor == kFinalNorm ? "final norm" : std::to_string(tensor));
    }
    planted.push_back({std::move(name), {std::move(tensors), shift}});
  };
  add("order: ", {15, 2, 27});
  add("order: ", {2, 27, 15});
  add("order: ", {15, 27, 2});
  add("order: ", {27, 2, 15});
  add("order: ", {27, 15, 2});
  add("all a layer low: ", {1, 14, 26});
  add("all a layer high: ", {3, 16, 28});
  add("one a layer off: ", {1, 15, 27});
  add("one a layer off: ", {3, 15, 27});
  add("one a layer off: ", {2, 14, 27});
  add("one a layer off: ", {2, 16, 27});
  add("one a layer off: ", {2, 15, 26});
  add("one a layer off: ", {2, 15, 28});
  add("embedding: ", {0, 15, 27});
  add("embedding: ", {0, 2, 15});
  add("final norm: ", {2, 15, kFinalNorm});
  add("behind the last layer: ", {2, 15, 30});
  add("states one position late: ", {2, 15, 27}, -1);
  return planted;
}

RowScores Draw(const RowPlan& plan, const RowScores& scores, const std::vector<size_t>& texts) {
  std::vector<int64_t> offsets;
  for (int64_t at = 0; const RowRange& range : plan.ranges) {
    offsets.push_back(at);
    at += range.count;
  }
  RowScores drawn;
  for (const size_t text : texts) {
    const auto from = scores.log_likelihood.begin() + offsets[text];
    drawn.log_likelihood.insert(drawn.log_likelihood.end(), from, from + plan.ranges[text].count);
  }
  return drawn;
}

// The verdict on `planted` of the pool, from these texts.
Verdict JudgeOn(const RowPlan& plan, const std::vector<Scored>& pool, size_t planted,
                const std::vector<size_t>& texts) {
  const StatisticsOptions options;
  RowPlan drawn_plan;
  for (const size_t text : texts) drawn_plan.ranges.push_back(plan.ranges[text]);
  std::vector<RowScores> drawn;
  for (const Scored& scored : pool) drawn.push_back(Draw(plan, scored.scores, texts));
  VerifyResult result;
  result.rows = drawn_plan.rows();
  result.sequences = static_cast<int32_t>(texts.size());
  result.alignment.shift = 0;
  std::vector<PairedTest> tests(pool.size());
  std::vector<PairedTest*> others;
  for (size_t i = 0; i < pool.size(); ++i) {
    if (i == planted) continue;
    tests[i] = ComparePaired(drawn_plan, drawn[planted].log_likelihood, drawn[i].log_likelihood);
    others.push_back(&tests[i]);
  }
  AdjustByHolm(others);
  for (size_t i = 0; i < pool.size(); ++i) {
    CandidateResult candidate;
    candidate.wiring.shift = pool[i].candidate.shift;
    candidate.test = tests[i];
    candidate.declared = i == planted;
    candidate.standing = i == planted ? Standing::kReference : StandingOf(tests[i], options);
    result.candidates.push_back(std::move(candidate));
  }
  result.reference = result.best = static_cast<int32_t>(planted);
  result.declared = {{"", "", result.reference, ""}};
  Judge(result, options);
  return result.verdict;
}

std::string Shares(const RowPlan& plan, const std::vector<Scored>& pool, size_t planted, int texts,
                   std::mt19937& random) {
  int counts[4] = {};
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<size_t> drawn;
    for (int i = 0; i < texts; ++i) drawn.push_back(random() % plan.ranges.size());
    ++counts[static_cast<int>(JudgeOn(plan, pool, planted, drawn))];
  }
  std::string shares;
  for (const Verdict verdict :
       {Verdict::kVerified, Verdict::kContradicted, Verdict::kEquivalent, Verdict::kUndecided}) {
    const int count = counts[static_cast<int>(verdict)];
    if (count == 0) continue;
    absl::StrAppendFormat(&shares, "%s%s %.3g %%", shares.empty() ? "" : ", ",
                          std::string(VerdictName(verdict)), 100.0 * count / kDraws);
  }
  return shares;
}

int Main(const char* drafter, const char* target, const char* captures_folder) {
  const auto recording = LoadRecording(captures_folder);
  AERIE_CHECK(recording.ok()) << recording.status().ToString();
  const auto checkpoint = LoadCheckpoint(drafter, target);
  AERIE_CHECK(checkpoint.ok()) << checkpoint.status().ToString();
  auto model = LoadEagle3Model(*checkpoint, {.dtype = ComputeDType::kFloat32, .threads = 1});
  AERIE_CHECK(model.ok()) << model.status().ToString();
  const CaptureSet captures = CapturesOf(*recording);
  AERIE_CHECK(captures.tensors.size() == kFinalNorm + 1) << "expected boundaries 0..30, final norm";
  const RowPlan plan = PlanRows(captures, 1'000'000, 1);

  // What aerie-verify would look at around the truth.
  std::set<Candidate> wanted;
  for (const Planted& planted : PlantedWirings()) wanted.insert(planted.candidate);
  for (const Candidate& candidate : NeighboursOf(kTruth, captures, {0, -1})) {
    wanted.insert(candidate);
  }
  for (const Candidate& candidate : MovedByLayers(kTruth, captures, {-2, -1, 1, 2})) {
    wanted.insert(candidate);
  }
  RowScorer scorer(**model, captures, 512);
  std::vector<Scored> pool;
  for (const Candidate& candidate : wanted) {
    auto scores = scorer.Score(candidate, plan);
    AERIE_CHECK(scores.ok()) << scores.status().ToString();
    pool.push_back({candidate, *std::move(scores)});
    std::fprintf(stderr, "%zu of %zu candidates\r", pool.size(), wanted.size());
  }
  const auto find = [&pool](const Candidate& candidate) {
    return static_cast<size_t>(
        std::find_if(pool.begin(), pool.end(),
                     [&](const Scored& scored) { return scored.candidate == candidate; }) -
        pool.begin());
  };
  const Scored& truth = pool[find(kTruth)];
  std::printf("%zu texts, %d rows, %zu candidates\n\n| planted | accuracy | log-likelihood |",
              plan.ranges.size(), static_cast<int>(plan.rows()), pool.size());
  std::printf(" texts for 3 sigma |");
  for (const int texts : kTexts) std::printf(" %d texts |", texts);
  std::printf("\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  std::mt19937 random(1);
  for (const Planted& planted : PlantedWirings()) {
    const size_t at = find(planted.candidate);
    const PairedTest test =
        ComparePaired(plan, truth.scores.log_likelihood, pool[at].scores.log_likelihood);
    const auto rows = RowsForThreeSigma(test);
    std::string needed;
    if (rows.has_value() && at != find(kTruth)) {
      const auto texts = static_cast<int64_t>(plan.ranges.size());
      needed = std::to_string((*rows * texts + plan.rows() - 1) / plan.rows());
    }
    std::printf("| %s | %.3f | %.3f | %s |", planted.name.c_str(), pool[at].scores.accuracy(),
                pool[at].scores.mean_log_likelihood(), needed.c_str());
    for (const int texts : kTexts) {
      std::printf(" %s |", Shares(plan, pool, at, texts, random).c_str());
    }
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace aerie

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: aerie-verify-power DRAFTER TARGET RECORDING\n");
    return 1;
  }
  return aerie::Main(argv[1], argv[2], argv[3]);
}
