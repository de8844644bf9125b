// The effective settings of one drafter, each with its source: what the model is built from and
// what GetServerInfo shows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/setting.h"
#include "common/wiring.h"
#include "server/checkpoint/sourced.h"

namespace aerie {

// Half-split rotation of the whole head dimension: inv_freq_i = theta^(-2i / head_dim).
struct RopeSpec {
  Sourced<std::string> type;  // "default"
  Sourced<double> theta;
};

// Everything that the equations need, none of it optional.
struct HeadSpec {
  Sourced<int32_t> hidden_size;         // of the drafter
  Sourced<int32_t> target_hidden_size;  // of one capture
  Sourced<int32_t> intermediate_size;
  Sourced<int32_t> num_heads;
  Sourced<int32_t> num_kv_heads;  // divides num_heads
  Sourced<int32_t> head_dim;      // even; num_heads x head_dim need not be hidden_size
  Sourced<int32_t> vocab_size;    // of the target
  Sourced<int32_t> draft_vocab_size;
  Sourced<double> rms_norm_eps;
  RopeSpec rope;
  Sourced<Wiring> wiring;
  // Flags that hold one value here; recorded so that a reader sees them.
  std::vector<Setting> fixed;

  // All of the above in a fixed order.
  std::vector<Setting> Settings() const;
};

}  // namespace aerie
