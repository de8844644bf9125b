// Attention over what the slots hold.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "absl/types/span.h"
#include "server/model/pass_rows.h"

namespace aerie {

// `queries` [chosen rows, heads, head_dim] in the dtype of the slots, into which the rows of the
// pass have been written. Row i of a sequence sees rows 0..i of its slot; `scale` is that of the
// scores. Returns [chosen rows, heads x value_dim].
at::Tensor Attend(const at::Tensor& queries, absl::Span<const NetSequence> sequences,
                  const RowChoice& choice, int32_t layer, double scale);

}  // namespace aerie
