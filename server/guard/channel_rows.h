// Some channels of some rows as fp32. Not HiddenRows::CopyToFloat: a row of a large target has tens
// of thousands of values, of which the guard looks at hundreds.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/hidden_rows.h"

namespace aerie {

// The values at `first_column` + channels[i] of `row` into out[i].
void ReadChannels(const HiddenRows& rows, int64_t row, int64_t first_column,
                  absl::Span<const int32_t> channels, absl::Span<float> out);

// The mean square of `columns` values, at least one, from `first_column` of `row` on.
double MeanSquare(const HiddenRows& rows, int64_t row, int64_t first_column, int64_t columns);

}  // namespace aerie
