// A target that exists only in tests: states of any boundary for any tokens, quickly.
//
// Like a real one, its residual stream carries the token's own embedding, adds something of its own
// at every layer, grows, parks a huge value in one channel, and leans with the text. Boundaries 0
// .. kLayers, and a final norm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/hidden_rows.h"
#include "common/wiring.h"
#include "server/guard/guard_profile.h"

namespace aerie {

class SyntheticTarget {
 public:
  static constexpr int32_t kHidden = 48, kLayers = 12, kVocab = 40;

  // Of text number `text`: its tokens, and how it leans.
  static std::vector<int32_t> Tokens(uint32_t text, int64_t count);
  // States of all its positions at one capture, [tokens, kHidden], F32.
  static std::string States(uint32_t text, const std::vector<int32_t>& tokens,
                            const Capture& capture);

  // All boundaries and the final norm.
  static std::vector<Capture> AllCaptures();
  static Wiring Declared();  // [2, 6, 10]
  // Made from the texts 0 .. 11, of `recorded`.
  static GuardProfile Profile(const std::vector<Capture>& recorded = AllCaptures());
};

}  // namespace aerie
