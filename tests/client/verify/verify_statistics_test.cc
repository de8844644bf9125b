// Whether verified tokens have the target's distribution: chi-square tests of first tokens and of
// pairs, on drafts that the server's own sampler drew.
//
// A wrong verifier must not get away with it. So the same tests are run on a verifier of the test's
// own that can leave a step out, and must fail then.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/verify.h"
#include "common/check.h"
#include "gtest/gtest.h"
#include "server/engine/counter_random.h"
#include "tests/client/verify/toy_language.h"
#include "tests/testing/chi_square.h"
#include "tests/testing/marked_table.h"

namespace aerie {
namespace {

constexpr size_t kVocabulary = ToyLanguage::kVocabulary;
constexpr int kTexts = 60000;  // of two tokens each
const std::vector<int32_t> kPrompt = {3, 1, 4};

const ToyLanguage& Language() {
  static const auto* language = new ToyLanguage();
  return *language;
}

// Tokens that a verifier commits behind a text.
using Round = std::function<std::vector<int32_t>(const std::vector<int32_t>& text,
                                                 const DraftTree& tree, UniformSource uniform)>;

struct Findings {
  ChiSquare first, pairs;
  double accept_length = 0;  // tokens a round
};

// Every text begins with the prompt and goes on for two tokens, in as many rounds as that takes:
// one when the first draft token is kept, which needs the right node's row for the second.
Findings Examine(const ToyLanguage::Shape& shape, const Round& round) {
  const ToyLanguage& language = Language();
  std::vector<int64_t> firsts(kVocabulary), pairs(kVocabulary * kVocabulary);
  int64_t rounds = 0, tokens = 0;
  for (uint64_t number = 0; number < kTexts; ++number) {
    uint32_t draws = 0;
    // Not the drafter's numbers: their keys have another seed.
    const auto uniform = [&] { return UniformAt(~number, 0, 0, draws++); };
    std::vector<int32_t> text = kPrompt;
    while (text.size() < kPrompt.size() + 2) {
      const DraftTree tree = language.Draft(text, shape, number);
      const std::vector<int32_t> committed = round(text, tree, uniform);
      text.insert(text.end(), committed.begin(), committed.end());
      ++rounds;
      tokens += static_cast<int64_t>(committed.size());
    }
    const auto first = static_cast<size_t>(text[kPrompt.size()]);
    const auto second = static_cast<size_t>(text[kPrompt.size() + 1]);
    ++firsts[first];
    ++pairs[first * kVocabulary + second];
  }
  const std::vector<float>& p = language.TargetProbs(kPrompt);
  std::vector<double> of_first(p.begin(), p.end()), of_pair;
  for (size_t token = 0; token < kVocabulary; ++token) {
    std::vector<int32_t> text = kPrompt;
    text.push_back(static_cast<int32_t>(token));
    for (const float q : language.TargetProbs(text)) of_pair.push_back(of_first[token] * q);
  }
  return {TestAgainst(firsts, of_first), TestAgainst(pairs, of_pair),
          static_cast<double>(tokens) / static_cast<double>(rounds)};
}

Round Verifier(bool chain) {
  return [chain](const std::vector<int32_t>& text, const DraftTree& tree, UniformSource uniform) {
    const std::vector<float> rows = Language().TargetProbs(text, tree);
    const TargetProbs target{rows, ToyLanguage::kVocabulary};
    const auto verdict = chain ? VerifyChainSampled(tree, target, uniform)
                               : VerifyTreeSampled(tree, target, uniform);
    AERIE_CHECK(verdict.ok()) << verdict.status().ToString();
    return verdict->tokens;
  };
}

struct Proposals {
  std::string name;
  ToyLanguage::Shape shape;
};

const Proposals kSampledChain = {"sampled chain of 3", {.widths = {1, 1, 1}}};
const Proposals kSampledTree = {"sampled tree, 3 + 6 + 6", {.widths = {3, 2, 1}}};
const std::vector<Proposals>& AllProposals() {
  static const auto* all = new std::vector<Proposals>{
      kSampledChain,
      {"greedy chain of 3", {.widths = {1, 1, 1}, .greedy = true}},
      kSampledTree,
      {"sampled tree, 4 + 2 + 2, the eldest alone with children",
       {.widths = {4, 2, 2}, .narrow = true}},
      {"sampled tree of all 8 that can be drawn", {.widths = {8, 1}}},
      {"greedy tree, 3 + 6 + 6", {.widths = {3, 2, 1}, .greedy = true}},
  };
  return *all;
}

bool IsChain(const Proposals& proposals) {
  for (const int32_t width : proposals.shape.widths) {
    if (width != 1) return false;
  }
  return true;
}

std::string Row(const std::string& name, const Findings& findings) {
  const auto cells = [](const ChiSquare& test) {
    return absl::StrFormat("%.1f / %d | %.2g", test.statistic, test.degrees, test.p_value);
  };
  return absl::StrFormat("| %s | %s | %s | %.2f |\n", name, cells(findings.first),
                         cells(findings.pairs), findings.accept_length);
}

// What a verifier must do, with the steps that can be left out. Written apart from the client's and
// for whole arrays, so that an error of one is not an error of both.
struct LeftOut {
  bool residual = false;         // the replacement comes from p instead of relu(p - q)
  bool renormalisation = false;  // q stays as it was after a sibling was rejected
};

Round PlainVerifier(LeftOut left_out) {
  return [left_out](const std::vector<int32_t>& text, const DraftTree& tree,
                    UniformSource uniform) {
    std::vector<int32_t> committed;
    for (int32_t node = 0;;) {
      std::vector<int32_t> here = text;
      here.insert(here.end(), committed.begin(), committed.end());
      const std::vector<float>& target = Language().TargetProbs(here);
      std::vector<double> p(target.begin(), target.end()), q(kVocabulary);
      for (const ProposalDistribution& d : tree.distributions) {
        if (d.node != node) continue;
        for (size_t i = 0; i < d.tokens.size(); ++i)
          q[static_cast<size_t>(d.tokens[i])] = d.probs[i];
      }
      const auto normalise = [](std::vector<double>* weights) {
        double sum = 0;
        for (const double weight : *weights) sum += weight;
        for (double& weight : *weights) weight = sum > 0 ? weight / sum : 0;
      };
      normalise(&p);
      normalise(&q);
      int32_t kept = 0;
      for (int32_t child = node + 1; child <= tree.size() && kept == 0; ++child) {
        const auto place = static_cast<size_t>(child) - 1;
        if (tree.parents[place] != node) continue;
        const auto token = static_cast<size_t>(tree.tokens[place]);
        if (uniform() < p[token] / q[token]) {
          kept = child;
          continue;
        }
        for (size_t i = 0; i < kVocabulary && !left_out.residual; ++i) {
          p[i] = p[i] > q[i] ? p[i] - q[i] : 0;
        }
        normalise(&p);
        q[token] = 0;
        if (!left_out.renormalisation) normalise(&q);
      }
      if (kept == 0) {
        const double u = uniform();
        size_t token = 0;
        for (double reached = p[0]; token + 1 < kVocabulary && u >= reached; reached += p[token]) {
          ++token;
        }
        committed.push_back(static_cast<int32_t>(token));
        return committed;
      }
      committed.push_back(tree.tokens[static_cast<size_t>(kept) - 1]);
      node = kept;
    }
  };
}

TEST(VerifyStatisticsTest, VerifiedTokensHaveTheTargetsDistribution) {
  std::string table =
      "| proposals | chi-square of first tokens / degrees of freedom | p | of pairs | p | tokens a "
      "round |\n|---|---|---|---|---|---|\n";
  for (const Proposals& proposals : AllProposals()) {
    const Findings findings = Examine(proposals.shape, Verifier(IsChain(proposals)));
    EXPECT_GT(findings.first.p_value, kFalseAlarm) << proposals.name;
    EXPECT_GT(findings.pairs.p_value, kFalseAlarm) << proposals.name;
    EXPECT_EQ(findings.first.samples, kTexts);
    absl::StrAppend(&table, Row(proposals.name, findings));
  }
  EXPECT_TRUE(PutTable("chi-square", table));
}

TEST(VerifyStatisticsTest, VerifiersThatLeaveAStepOutAreFoundOut) {
  std::string table =
      "| left out | chi-square of first tokens / degrees of freedom | p | of pairs | p | tokens a "
      "round |\n|---|---|---|---|---|---|\n";
  const auto examine = [&](const std::string& name, const Proposals& proposals, LeftOut left_out) {
    const Findings findings = Examine(proposals.shape, PlainVerifier(left_out));
    absl::StrAppend(&table, Row(absl::StrCat(name, ": ", proposals.name), findings));
    return findings;
  };
  for (const Proposals& proposals : {kSampledChain, kSampledTree}) {
    const Findings whole = examine("nothing", proposals, {});
    EXPECT_GT(whole.first.p_value, kFalseAlarm);
    EXPECT_GT(whole.pairs.p_value, kFalseAlarm);
    const Findings without = examine("the residual", proposals, {.residual = true});
    EXPECT_LT(without.first.p_value, kFalseAlarm);
    EXPECT_LT(without.pairs.p_value, kFalseAlarm);
  }
  const Findings without =
      examine("the renormalisation of q", kSampledTree, {.renormalisation = true});
  EXPECT_LT(without.first.p_value, kFalseAlarm);
  EXPECT_LT(without.pairs.p_value, kFalseAlarm);
  EXPECT_TRUE(PutTable("chi-square-left-out", table));
}

}  // namespace
}  // namespace aerie
