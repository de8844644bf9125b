// That rejection sampling with what a sampled draft tells keeps the target's distribution.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/sampled_tree.h"
#include "tests/testing/chi_square.h"

namespace aerie {
namespace {

// A target and a drafter over four tokens that depend on the token before.
std::vector<double> TargetAfter(int32_t token) {
  std::vector<double> p = {0.1, 0.2, 0.3, 0.4};
  std::rotate(p.begin(), p.begin() + token, p.end());
  return p;
}
std::vector<double> DrafterAfter(int32_t token) {
  std::vector<double> q = {0.45, 0.35, 0.15, 0.05};
  std::rotate(q.begin(), q.begin() + (3 * token + 1) % 4, q.end());
  return q;
}

// A row's output: most likely first, as the seam says.
RowOutput DrafterOutput(int32_t token) {
  const std::vector<double> q = DrafterAfter(token);
  RowOutput output;
  for (int32_t i = 0; i < 4; ++i) {
    output.top.push_back({i, static_cast<float>(std::log(q[static_cast<size_t>(i)]))});
  }
  std::sort(output.top.begin(), output.top.end(),
            [](const auto& a, const auto& b) { return a.log_prob > b.log_prob; });
  return output;
}

// Rejection sampling through a tree, sibling after sibling: the tokens that the target commits.
class MultiRoundVerifier {
 public:
  explicit MultiRoundVerifier(uint64_t seed) : random_(seed) {}

  std::vector<int32_t> Verify(const DraftTree& tree, int32_t last_token) {
    std::vector<int32_t> committed;
    int32_t node = 0;
    while (true) {
      std::vector<double> p = TargetAfter(committed.empty() ? last_token : committed.back());
      const int32_t kept = KeepChild(tree, node, &p);
      if (kept == 0) {
        committed.push_back(Draw(p));
        return committed;
      }
      node = kept;
      committed.push_back(tree.tokens[static_cast<size_t>(node) - 1]);
    }
  }

 private:
  // The child that is kept, 0: none, and then *p is what to draw from.
  int32_t KeepChild(const DraftTree& tree, int32_t node, std::vector<double>* p) {
    std::vector<double> q(p->size(), 0.0);
    for (const ProposalDistribution& d : tree.distributions) {
      for (size_t i = 0; d.node == node && i < d.tokens.size(); ++i) {
        q[static_cast<size_t>(d.tokens[i])] = static_cast<double>(d.probs[i]);
      }
    }
    for (size_t i = 0; i < tree.tokens.size(); ++i) {
      if (tree.parents[i] != node) continue;
      const auto token = static_cast<size_t>(tree.tokens[i]);
      if (uniform_(random_) * q[token] < (*p)[token]) return static_cast<int32_t>(i) + 1;
      for (size_t t = 0; t < q.size(); ++t) (*p)[t] = std::max(0.0, (*p)[t] - q[t]);
      Normalise(p);
      q[token] = 0;
      Normalise(&q);
    }
    return 0;
  }
  static void Normalise(std::vector<double>* weights) {
    const double sum = std::accumulate(weights->begin(), weights->end(), 0.0);
    for (double& weight : *weights) weight = sum > 0 ? weight / sum : 0;
  }
  int32_t Draw(const std::vector<double>& p) {
    return std::discrete_distribution<int32_t>(p.begin(), p.end())(random_);
  }

  std::mt19937_64 random_;
  std::uniform_real_distribution<double> uniform_;
};

struct LosslessCase {
  std::string name;
  GrowthShape shape;
};

class LosslessTest : public ::testing::TestWithParam<LosslessCase> {};

// How many children a node gets must not depend on what will be drawn: then, and only then, the
// tokens that come out have the target's distribution, pair by pair.
TEST_P(LosslessTest, RejectionSamplingKeepsTheTargetsDistribution) {
  const SessionOptions options = {
      .temperature = 1.0f, .top_m = 4, .seed = 77, .probs = ProposalProbs::kTopM};
  MultiRoundVerifier verifier(5);
  std::vector<int64_t> pairs(16, 0);
  int32_t last = 0;
  int64_t position = 0, drafted = 0, kept = 0;
  for (int64_t committed = 0; committed < 100000;) {
    SampledTree tree(GetParam().shape, options, position);
    tree.Grow(std::vector<RowOutput>{DrafterOutput(last)});
    while (!tree.done()) {
      std::vector<RowOutput> outputs;
      for (const int32_t token : tree.tokens()) outputs.push_back(DrafterOutput(token));
      tree.Grow(outputs);
    }
    const std::vector<int32_t> tokens = verifier.Verify(tree.Tree(), last);
    for (const int32_t token : tokens) {
      ++pairs[static_cast<size_t>(last * 4 + token)];
      last = token;
    }
    committed += static_cast<int64_t>(tokens.size());
    position += static_cast<int64_t>(tokens.size());
    ++drafted;
    kept += static_cast<int64_t>(tokens.size()) - 1;
  }
  EXPECT_GT(kept, drafted / 4) << "nearly nothing was kept, so little was tested";
  for (int32_t before = 0; before < 4; ++before) {
    const auto counts = absl::MakeConstSpan(pairs).subspan(static_cast<size_t>(before) * 4, 4);
    const ChiSquare test = TestAgainst(counts, TargetAfter(before));
    EXPECT_GT(test.p_value, kFalseAlarm) << "after token " << before << ": " << test.statistic;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LosslessTest,
                         ::testing::ValuesIn(std::vector<LosslessCase>{
                             {"AChain", {3, 1, 3}},
                             {"ATree", {3, 3, 9}},
                             {"ATreeWithFewNodes", {3, 3, 5}},
                             {"AWideLevel", {1, 4, 4}},
                         }),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
