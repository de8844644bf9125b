#include "server/model/cuda_inputs.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"

namespace aerie {
namespace {

constexpr int64_t kSeenWords = sizeof(DeviceSeen) / 4;

DeviceSeen ViewOf(const SeenRows& seen) {
  return {.early_begin = static_cast<int32_t>(seen.early.begin),
          .early_end = static_cast<int32_t>(std::max(seen.early.begin, seen.early.end)),
          .late_begin = static_cast<int32_t>(seen.late.begin),
          .late_end = static_cast<int32_t>(std::max(seen.late.begin, seen.late.end)),
          .singles = static_cast<int32_t>(seen.singles)};
}

}  // namespace

// Parts begin at multiples of 16 bytes.
void CudaInputs::Lay(const Shape& shape) {
  int64_t next = 0;
  const auto take = [&next](int64_t words) {
    const int64_t at = next;
    next += (words + 3) / 4 * 4;
    return at;
  };
  cos_ = take(shape.rows * shape.pairs);
  sin_ = take(shape.rows * shape.pairs);
  embeddings_ = take(shape.rows * shape.hidden);
  states_ = take((shape.rows - shape.extend_rows) * shape.hidden);
  write_page_ = take(shape.rows);
  write_at_ = take(shape.rows);
  wanted_ = take(shape.wanted);
  probes_ = take(shape.wanted);
  wanted_views_ = take(shape.wanted * kSeenWords);
  all_views_ = take(shape.views_of_all ? shape.rows * kSeenWords : 0);
  table_ = next;
}

bool CudaInputs::Reserve(const Shape& shape, int64_t table) {
  Lay(shape);
  host_.Reserve<uint32_t>(table_ + table);
  return block_.Reserve<uint32_t>(table_ + table);
}

void CudaInputs::BringRows(const NetInput& input, int32_t page_rows, const Rotation& rope,
                           const MappedRows& embedding, const Shape& shape) {
  const PassRows& rows = input.rows;
  for (int64_t row = 0; row < shape.rows; ++row) {
    rope.FillTurns(rows.positions()[row], rows.lengths()[row],
                   HostAt<float>(cos_) + row * shape.pairs,
                   HostAt<float>(sin_) + row * shape.pairs);
    embedding.CopyRow(rows.ids()[row], HostAt<float>(embeddings_) + row * shape.hidden);
  }
  auto* state = HostAt<float>(states_);
  for (const NetSequence& sequence : rows.sequences()) {
    const StepSequence& part = input.batch[sequence.part];
    for (const int32_t parent : part.parents) {
      std::memcpy(state, input.slots.at(part.slot).state(parent), shape.hidden * sizeof(float));
      state += shape.hidden;
    }
    for (int64_t i = 0; i < sequence.rows; ++i) {
      const int64_t at = sequence.first_row + i;
      HostAt<int32_t>(write_page_)[sequence.first + i] = sequence.pages[at / page_rows];
      HostAt<int32_t>(write_at_)[sequence.first + i] = static_cast<int32_t>(at % page_rows);
    }
  }
  for (int64_t i = 0; i < shape.wanted; ++i)
    HostAt<int32_t>(wanted_)[i] = static_cast<int32_t>(rows.wanted()[i]);
}

// Pages of every sequence, then the rows of paths. Returns how many numbers these are.
int64_t CudaInputs::BringTable(const NetInput& input) {
  const PassRows& rows = input.rows;
  auto* const table = HostAt<int32_t>(table_);
  int32_t next = 0;
  int64_t furthest = 1;
  views_.resize(rows.count());
  for (const NetSequence& sequence : rows.sequences()) {
    const int32_t first_page = next;
    std::copy(sequence.pages.begin(), sequence.pages.end(), table + next);
    next += static_cast<int32_t>(sequence.pages.size());
    for (int64_t i = sequence.first; i < sequence.first + sequence.rows; ++i) {
      const SeenRows& seen = rows.seen()[i];
      views_[i] = ViewOf(seen);
      views_[i].first_page = first_page;
      views_[i].first_single = next;
      furthest = std::max({furthest, seen.early.end, seen.late.end});
      for (int64_t j = 0; j < seen.singles; ++j) {
        table[next++] = static_cast<int32_t>(seen.single[j]);
        furthest = std::max(furthest, seen.single[j] + 1);
      }
    }
  }
  // Powers of two: sequences grow, and a recorded pass is for one number of splits.
  splits_ = 1;
  while (int64_t{splits_} * kSplitRows < furthest) splits_ *= 2;
  return next;
}

bool CudaInputs::Bring(const NetInput& input, const Shape& shape, int32_t page_rows,
                       const Rotation& rope, const MappedRows& embedding,
                       const std::vector<int32_t>& probes) {
  int64_t table = 0;
  for (const NetSequence& sequence : input.rows.sequences())
    table += static_cast<int64_t>(sequence.pages.size());
  for (const SeenRows& seen : input.rows.seen()) table += seen.singles;
  const bool moved = Reserve(shape, table);
  BringRows(input, page_rows, rope, embedding, shape);
  AERIE_CHECK(BringTable(input) == table);
  std::copy(probes.begin(), probes.end(), HostAt<int32_t>(probes_));
  for (int64_t i = 0; i < shape.wanted; ++i)
    HostAt<DeviceSeen>(wanted_views_)[i] = views_[input.rows.wanted()[i]];
  if (shape.views_of_all) std::copy(views_.begin(), views_.end(), HostAt<DeviceSeen>(all_views_));
  device_.CopyIn(block_.Get<uint32_t>(), host_.Get<uint32_t>(), 4 * (table_ + table));
  return moved;
}

}  // namespace aerie
