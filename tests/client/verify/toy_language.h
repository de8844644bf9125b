// A target whose distribution is known, and drafts for it drawn as the server draws them.
//
// The target's next token depends on the two before it, so a verifier that mixes up nodes or paths
// shows. The drafter knows a smaller vocabulary and errs by much.
#pragma once

#include <cstdint>
#include <vector>

#include "common/draft_tree.h"
#include "server/engine/draft_model.h"

namespace aerie {

class ToyLanguage {
 public:
  static constexpr int32_t kVocabulary = 24;

  ToyLanguage();

  // What follows `text`, which has two tokens or more, for every token.
  const std::vector<float>& TargetProbs(const std::vector<int32_t>& text) const;
  // Rows behind the root, whose text is `text`, and behind every node of `tree`.
  std::vector<float> TargetProbs(const std::vector<int32_t>& text, const DraftTree& tree) const;

  // How a proposal is made: widths[d] children for each node of depth d, the root having depth 0,
  // of which the eldest alone has children in turn if `narrow`.
  struct Shape {
    std::vector<int32_t> widths;
    bool narrow = false;
    bool greedy = false;  // the most likely ones; otherwise drawn, and told with their distribution
  };
  DraftTree Draft(const std::vector<int32_t>& text, const Shape& shape, uint64_t seed) const;

 private:
  // By the last two tokens.
  std::vector<std::vector<float>> target_probs_;
  std::vector<std::vector<ScoredToken>> drafter_top_;
  std::vector<std::vector<float>> drafter_probs_;  // of drafter_top_
};

}  // namespace aerie
