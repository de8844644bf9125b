#include "server/model/attend.h"

#include <vector>

namespace aerie {
namespace {

// The last row of a sequence sees all rows of its slot, so there is nothing to mask. Query heads
// that share a key head stand side by side as its queries: no key is copied for them.
at::Tensor AttendLast(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                      double scale) {
  const int64_t group = query.size(1) / keys.size(0);
  return at::scaled_dot_product_attention(query.reshape({1, keys.size(0), group, query.size(2)}),
                                          keys.unsqueeze(0), values.unsqueeze(0), {}, 0.0, false,
                                          scale)
      .reshape({1, -1});
}

// [rows, heads, head_dim], the last rows of the slot.
at::Tensor AttendAll(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                     double scale) {
  const int64_t rows = queries.size(0), kv_heads = keys.size(0), length = keys.size(1);
  const int64_t group = queries.size(1) / kv_heads;
  const at::Tensor visible = at::ones({rows, length}, at::kBool).tril(length - rows);
  // Key heads stand for a batch, and the query heads that share one for its heads.
  const at::Tensor attended = at::scaled_dot_product_attention(
      queries.view({rows, kv_heads, group, -1}).permute({1, 2, 0, 3}),
      keys.unsqueeze(1).expand({-1, group, -1, -1}),
      values.unsqueeze(1).expand({-1, group, -1, -1}), visible, 0.0, false, scale);
  return attended.permute({2, 0, 1, 3}).reshape({rows, -1});
}

}  // namespace

at::Tensor Attend(const at::Tensor& queries, absl::Span<const NetSequence> sequences,
                  const RowChoice& choice, int32_t layer, double scale) {
  std::vector<at::Tensor> attended;
  int64_t first = 0;
  for (const NetSequence& sequence : sequences) {
    const int64_t rows = choice.every() ? sequence.rows : sequence.wants_output ? 1 : 0;
    if (rows == 0) continue;
    const at::Tensor own = queries.narrow(0, first, rows);
    const at::Tensor keys = sequence.slot->Keys(layer, sequence.end());
    const at::Tensor values = sequence.slot->Values(layer, sequence.end());
    attended.push_back(rows == 1 ? AttendLast(own, keys, values, scale)
                                 : AttendAll(own, keys, values, scale));
    first += rows;
  }
  return attended.size() == 1 ? attended[0] : at::cat(attended);
}

}  // namespace aerie
