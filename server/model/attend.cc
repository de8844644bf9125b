#include "server/model/attend.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace aerie {
namespace {

// Query rows of one task. Each reads all that it sees, so fewer would read it more often; more
// would leave threads without work.
constexpr int64_t kTaskRows = 32;
// Products below which a thread costs more than it saves.
constexpr int64_t kWorthAThread = int64_t{1} << 20;

int64_t SeenCount(const SeenRows& seen) {
  const auto size = [](const RowRange& range) {
    return range.empty() ? 0 : range.end - range.begin;
  };
  return size(seen.early) + size(seen.late) + seen.singles;
}

}  // namespace

void AttentionPlan::Assign(const PassRows& rows, absl::Span<const int64_t> chosen,
                           int64_t kv_heads) {
  seen_.clear();
  tasks_.clear();
  pairs_ = 0;
  for (const int64_t number : chosen) {
    seen_.push_back(rows.seen()[number]);
    pairs_ += SeenCount(seen_.back());
  }
  const auto position_of = [&](int64_t number) {
    return std::lower_bound(chosen.begin(), chosen.end(), number) - chosen.begin();
  };
  for (const NetSequence& sequence : rows.sequences()) {
    const int64_t end = position_of(sequence.first + sequence.rows);
    for (int64_t first = position_of(sequence.first); first < end; first += kTaskRows) {
      for (int64_t head = 0; head < kv_heads; ++head)
        tasks_.push_back({&sequence, head, first, std::min(kTaskRows, end - first)});
    }
  }
}

int64_t AttentionPlan::Workers(const KvShape& shape, int64_t heads) const {
  return std::max<int64_t>(1, pairs_ * heads * (shape.key_dim + shape.value_dim) / kWorthAThread);
}

void AttentionPlan::Run(int64_t number, const AttentionRows& rows, const KvPages& kv,
                        int32_t layer) const {
  thread_local AttentionScratch scratch;
  const Task& task = tasks_[number];
  const KvShape& shape = kv.shape();
  const int64_t group = rows.heads / shape.kv_heads;
  const int64_t first_head = task.first * rows.heads + task.kv_head * group;
  AttendPages({.kv = kv.RowsOf(layer, task.kv_head, task.sequence->pages),
               .rows = task.count,
               .group = static_cast<int32_t>(group),
               .seen = seen_.data() + task.first,
               .queries = rows.queries + first_head * shape.key_dim,
               .query_stride = rows.heads * shape.key_dim,
               .out = rows.out + first_head * shape.value_dim,
               .out_stride = rows.heads * shape.value_dim,
               .scale = static_cast<float>(rows.scale)},
              scratch);
}

at::Tensor Attend(const at::Tensor& queries, const PassRows& rows, const RowChoice& choice,
                  const KvPages& kv, int32_t layer, double scale) {
  const int64_t heads = queries.size(1);
  const at::Tensor asked = queries.to(at::kFloat).contiguous();
  at::Tensor out = at::empty({choice.count(), heads * kv.shape().value_dim}, at::kFloat);
  const AttentionRows own = {asked.const_data_ptr<float>(), out.mutable_data_ptr<float>(), heads,
                             scale};
  AttentionPlan plan;
  plan.Assign(rows, choice.numbers(), kv.shape().kv_heads);
  const int64_t count = plan.tasks();
  const int64_t workers = std::clamp<int64_t>(plan.Workers(kv.shape(), heads), 1,
                                              std::min<int64_t>(at::get_num_threads(), count));
  // Later tasks of a prompt see more rows, so each worker takes some from everywhere.
  at::parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      for (int64_t i = worker; i < count; i += workers) plan.Run(i, own, kv, layer);
    }
  });
  return out;
}

}  // namespace aerie
