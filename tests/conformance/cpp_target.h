// A target made of hashes: a text, and states that carry their own token, as those of real targets
// do. The next token and every state depend on the whole history, so a row of the wrong place, or
// of a cache that kept rejected tokens, is another row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/manifest.h"

namespace aerie {

class HashTarget {
 public:
  static constexpr int32_t kVocabulary = 61;
  static constexpr int32_t kLayers = 6;
  static constexpr int32_t kHiddenSize = 8;
  // Boundaries 1 and 4, fp32.
  static Manifest TargetManifest();
  // 16 tokens, in which some come again.
  static std::vector<int32_t> Prompt();

  // The greedy token behind `history`.
  static int32_t Choice(const std::vector<int32_t>& history);
  // Appends the captures of the last position of `history` to `bytes`, as the wire wants them.
  static void AppendRow(const std::vector<int32_t>& history, std::string* bytes);
};

}  // namespace aerie
