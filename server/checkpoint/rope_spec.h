// How a drafter rotates queries and keys; independent of the target's rotation.
//
// The cosines and sines of `kYarn` are multiplied by `amplitude`, which changes attention scores
// even at distance 0: dropping it yields a drafter that works, badly.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/setting.h"
#include "server/checkpoint/sourced.h"

namespace aerie {

enum class RopeType {
  kDefault,  // inv_freq_i = theta^(-2i / dims)
  kLinear,   // positions divided by `factor`
  kDynamic,  // theta grows once the sequence is longer than `original_max_positions`
  kLlama3,   // inv_freq blended between itself and itself / factor, by wavelength
  kYarn,     // the same by a ramp over the channels
};

// "default", "linear", "dynamic", "llama3", "yarn".
absl::string_view RopeTypeName(RopeType type);

struct RopeSpec {
  Sourced<RopeType> type;
  Sourced<double> theta;
  // How many channels of a head are rotated, even: the first ones of head_dim, or with latent
  // attention all of qk_rope_head_dim.
  Sourced<int32_t> dims;
  // Whether channel 2i turns with 2i+1; else i with i + dims/2.
  Sourced<bool> interleaved;
  Sourced<double> factor;  // >= 1; 1 with kDefault

  // With kLlama3 and kYarn original_max_position_embeddings; with kDynamic the length up to which
  // nothing is scaled. 0 otherwise.
  Sourced<int32_t> original_max_positions;
  Sourced<double> low_freq_factor, high_freq_factor;  // kLlama3 only
  Sourced<double> beta_fast, beta_slow;               // kYarn only
  // kYarn only: whether the ends of the ramp are rounded to whole channels.
  Sourced<bool> truncate{true, ""};
  Sourced<double> amplitude{1.0, ""};  // of cos and sin; 1 unless kYarn

  // Those that the type uses, in a fixed order.
  std::vector<Setting> Settings() const;
};

}  // namespace aerie
