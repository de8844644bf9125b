#include "server/model/pass_rows.h"

#include <vector>

#include "server/model/tensor_view.h"

namespace aerie {

RowChoice RowChoice::Wanted(absl::Span<const NetSequence> sequences) {
  std::vector<int64_t> rows;
  int64_t end = 0;
  for (const NetSequence& sequence : sequences) {
    end += sequence.rows;
    if (sequence.wants_output) rows.push_back(end - 1);
  }
  RowChoice choice(static_cast<int64_t>(rows.size()));
  choice.every_ = choice.count_ == end;
  if (!choice.every_) choice.rows_ = Indices(rows);
  return choice;
}

Turns TurnsOf(absl::Span<const NetSequence> sequences, RopeTable& rope) {
  std::vector<int64_t> positions, lengths;
  for (const NetSequence& sequence : sequences) {
    for (int64_t row = 0; row < sequence.rows; ++row) {
      positions.push_back(sequence.position + row);
      lengths.push_back(sequence.end());
    }
  }
  return rope.At(positions, lengths);
}

}  // namespace aerie
