#include "tests/client/verify/toy_language.h"

#include <algorithm>
#include <cmath>

#include "common/check.h"
#include "server/engine/counter_random.h"
#include "server/engine/proposal_sampler.h"

namespace aerie {
namespace {

// Both sample at this temperature.
constexpr float kTemperature = 0.8f;
// The drafter does not know the tokens from here on; the others it confuses with the target's
// logits plus as much of its own.
constexpr int32_t kDraftVocabulary = 18;
constexpr double kTargetSpread = 5;
constexpr double kDrafterError = 4;
constexpr size_t kTopM = 8;

double TargetLogit(int32_t context, int32_t token) {
  return kTargetSpread * UniformAt(1, context, token, 0);
}

std::vector<ScoredToken> DrafterTop(int32_t context) {
  std::vector<ScoredToken> top;
  for (int32_t token = 0; token < kDraftVocabulary; ++token) {
    const double error = kDrafterError * UniformAt(2, context, token, 0);
    top.push_back({token, static_cast<float>(TargetLogit(context, token) + error)});
  }
  std::stable_sort(top.begin(), top.end(), [](const ScoredToken& a, const ScoredToken& b) {
    return a.log_prob > b.log_prob;
  });
  top.resize(kTopM);
  return top;
}

// The last two tokens as a number.
size_t ContextOf(const std::vector<int32_t>& text) {
  AERIE_CHECK(text.size() >= 2);
  return static_cast<size_t>(text[text.size() - 2] * ToyLanguage::kVocabulary + text.back());
}

std::vector<int32_t> TextOf(const std::vector<int32_t>& text, const DraftTree& tree, int32_t node) {
  std::vector<int32_t> path;
  for (; node > 0; node = tree.parents[static_cast<size_t>(node) - 1]) {
    path.push_back(tree.tokens[static_cast<size_t>(node) - 1]);
  }
  std::vector<int32_t> whole = text;
  whole.insert(whole.end(), path.rbegin(), path.rend());
  return whole;
}

}  // namespace

ToyLanguage::ToyLanguage() {
  for (int32_t context = 0; context < kVocabulary * kVocabulary; ++context) {
    std::vector<ScoredToken> logits;
    for (int32_t token = 0; token < kVocabulary; ++token) {
      logits.push_back({token, static_cast<float>(TargetLogit(context, token))});
    }
    target_probs_.push_back(ProposalProbabilities(logits, kTemperature));
    drafter_top_.push_back(DrafterTop(context));
    drafter_probs_.push_back(ProposalProbabilities(drafter_top_.back(), kTemperature));
  }
}

const std::vector<float>& ToyLanguage::TargetProbs(const std::vector<int32_t>& text) const {
  return target_probs_[ContextOf(text)];
}

std::vector<float> ToyLanguage::TargetProbs(const std::vector<int32_t>& text,
                                            const DraftTree& tree) const {
  std::vector<float> rows;
  for (int32_t node = 0; node <= tree.size(); ++node) {
    const std::vector<float>& row = TargetProbs(TextOf(text, tree, node));
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

DraftTree ToyLanguage::Draft(const std::vector<int32_t>& text, const Shape& shape,
                             uint64_t seed) const {
  DraftTree tree;
  std::vector<int32_t> level = {0};
  for (const int32_t width : shape.widths) {
    std::vector<int32_t> next;
    for (const int32_t node : level) {
      const size_t context = ContextOf(TextOf(text, tree, node));
      const std::vector<ScoredToken>& top = drafter_top_[context];
      const std::vector<float>& probs = drafter_probs_[context];
      std::vector<size_t> chosen;
      if (shape.greedy) {
        for (int32_t i = 0; i < width; ++i) chosen.push_back(static_cast<size_t>(i));
      } else {
        chosen = DrawWithoutReplacement(probs, static_cast<size_t>(width),
                                        {seed, static_cast<int64_t>(text.size()), node});
        ProposalDistribution distribution{.node = node, .probs = probs};
        for (const ScoredToken& entry : top) distribution.tokens.push_back(entry.token);
        tree.distributions.push_back(std::move(distribution));
      }
      for (const size_t i : chosen) {
        tree.tokens.push_back(top[i].token);
        tree.parents.push_back(node);
        tree.log_probs.push_back(std::log(probs[i]));
        next.push_back(tree.size());
      }
      if (shape.narrow) break;
    }
    level = std::move(next);
  }
  return tree;
}

}  // namespace aerie
