// What one tensor says of itself, with nothing to compare it with.
#pragma once

#include <optional>
#include <string>

#include "server/recording/recording.h"

namespace aerie {

struct TensorFacts {
  float median_row_rms = 0;

  // RowDistance between rows of one token in different surroundings, the median over `token_pairs`
  // of them. An embedding output depends on the token alone, so for it this is 0 (to rounding),
  // and for nothing else: a norm of 1 is no sign of an embedding, this is. Absent without such
  // pairs.
  std::optional<double> same_token_distance;
  int64_t token_pairs = 0;

  // True and false are findings; absent: too few pairs.
  std::optional<bool> depends_on_token_alone() const;
};

// A sentence when the facts contradict what `tensor` claims to be, else nullopt.
std::optional<std::string> FactAgainstClaim(const RecordedTensor& tensor, const TensorFacts& facts);

// Looks at a bounded number of rows, spread over the recording.
TensorFacts FindFacts(const Recording& recording, size_t tensor);

}  // namespace aerie
