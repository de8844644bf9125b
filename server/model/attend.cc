#include "server/model/attend.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

namespace aerie {
namespace {

// Query rows of one task. Each reads all that it sees, so fewer would read it more often; more
// would leave threads without work.
constexpr int64_t kTaskRows = 32;
// Products below which a thread costs more than it saves.
constexpr int64_t kWorthAThread = int64_t{1} << 20;

struct Task {
  const NetSequence* sequence;
  int64_t kv_head;
  int64_t first, count;  // chosen rows
};

int64_t SeenCount(const SeenRows& seen) {
  const auto size = [](const RowRange& range) {
    return range.empty() ? 0 : range.end - range.begin;
  };
  return size(seen.early) + size(seen.late) + seen.singles;
}

}  // namespace

at::Tensor Attend(const at::Tensor& queries, const PassRows& rows, const RowChoice& choice,
                  const KvPages& kv, int32_t layer, double scale) {
  const KvShape& shape = kv.shape();
  const int64_t heads = queries.size(1), group = heads / shape.kv_heads;
  const at::Tensor asked = queries.to(at::kFloat).contiguous();
  at::Tensor out = at::empty({choice.count(), heads * shape.value_dim}, at::kFloat);
  const float* const query_data = asked.const_data_ptr<float>();
  float* const out_data = out.mutable_data_ptr<float>();

  std::vector<SeenRows> seen;
  seen.reserve(choice.count());
  int64_t pairs = 0;
  for (const int64_t number : choice.numbers()) {
    seen.push_back(rows.seen()[number]);
    pairs += SeenCount(seen.back());
  }
  std::vector<Task> tasks;
  const auto position_of = [&](int64_t number) {
    return std::lower_bound(choice.numbers().begin(), choice.numbers().end(), number) -
           choice.numbers().begin();
  };
  for (const NetSequence& sequence : rows.sequences()) {
    const int64_t end = position_of(sequence.first + sequence.rows);
    for (int64_t first = position_of(sequence.first); first < end; first += kTaskRows) {
      for (int64_t head = 0; head < shape.kv_heads; ++head)
        tasks.push_back({&sequence, head, first, std::min(kTaskRows, end - first)});
    }
  }

  const auto run = [&](const Task& task) {
    thread_local AttentionScratch scratch;
    AttendPages(
        {.kv = kv.RowsOf(layer, task.kv_head, task.sequence->pages),
         .rows = task.count,
         .group = static_cast<int32_t>(group),
         .seen = seen.data() + task.first,
         .queries = query_data + (task.first * heads + task.kv_head * group) * shape.key_dim,
         .query_stride = heads * shape.key_dim,
         .out = out_data + (task.first * heads + task.kv_head * group) * shape.value_dim,
         .out_stride = heads * shape.value_dim,
         .scale = static_cast<float>(scale)},
        scratch);
  };
  const auto count = static_cast<int64_t>(tasks.size());
  const int64_t work = pairs * heads * (shape.key_dim + shape.value_dim);
  const int64_t workers =
      std::clamp<int64_t>(work / kWorthAThread, 1, std::min<int64_t>(at::get_num_threads(), count));
  // Later tasks of a prompt see more rows, so each worker takes some from everywhere.
  at::parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) {
      for (int64_t i = worker; i < count; i += workers) run(tasks[i]);
    }
  });
  return out;
}

}  // namespace aerie
