// Attention of the rows of a pass over what the pages hold.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "server/model/kv_pages.h"
#include "server/model/pass_rows.h"

namespace aerie {

// Where attention finds its queries, and where it leaves what comes out: chosen row i at
// queries + i * heads * key_dim, and at out + i * heads * value_dim.
struct AttentionRows {
  const float* queries = nullptr;
  float* out = nullptr;
  int64_t heads = 0;
  double scale = 1.0;  // of the scores
};

// The attention of one pass cut into tasks, which threads may run side by side. It is the same for
// all layers that choose the same rows. Memory is kept from one pass to the next.
class AttentionPlan {
 public:
  // `chosen`: numbers of rows of the pass, ascending. `rows` must outlive the plan.
  void Assign(const PassRows& rows, absl::Span<const int64_t> chosen, int64_t kv_heads);

  int64_t tasks() const { return static_cast<int64_t>(tasks_.size()); }
  // Pairs of a chosen row and a row that it sees.
  int64_t pairs() const { return pairs_; }
  // How many threads the work is worth.
  int64_t Workers(const KvShape& shape, int64_t heads) const;
  // The keys and values of all rows of the pass have been written.
  void Run(int64_t task, const AttentionRows& rows, const KvPages& kv, int32_t layer) const;

 private:
  struct Task {
    const NetSequence* sequence;
    int64_t kv_head;
    int64_t first, count;  // chosen rows
  };
  std::vector<SeenRows> seen_;  // of the chosen rows
  std::vector<Task> tasks_;
  int64_t pairs_ = 0;
};

// `queries` [chosen rows, heads, key_dim]; the keys and values of all rows of the pass have been
// written. `scale` is that of the scores. Returns [chosen rows, heads x value_dim], float32.
at::Tensor Attend(const at::Tensor& queries, const PassRows& rows, const RowChoice& choice,
                  const KvPages& kv, int32_t layer, double scale);

}  // namespace aerie
