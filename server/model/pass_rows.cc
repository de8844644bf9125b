#include "server/model/pass_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/check.h"
#include "server/model/tensor_view.h"

namespace aerie {
namespace {

// Of the rows in front of `end`, those that a row at `position` sees.
SeenRows SeenBefore(int64_t end, int64_t position, const VisibleRows& visible) {
  const int64_t start = std::min(visible.start, end);
  if (visible.window == 0) return {.late = {start, end}};
  const int64_t from = std::clamp(position - visible.window + 1, start, end);
  return {.early = {start, std::min(start + visible.sink, from)}, .late = {from, end}};
}

// The first row of those wanted.
int64_t FirstWanted(Outputs outputs, int64_t rows) {
  switch (outputs) {
    case Outputs::kNone:
      break;
    case Outputs::kLast:
      return rows - 1;
    case Outputs::kEvery:
      return 0;
  }
  return rows;
}

}  // namespace

void PassRows::Assign(absl::Span<const StepSequence> batch, const RoundSlots& slots,
                      int32_t page_rows) {
  sequences_.clear();
  ids_.clear();
  positions_.clear();
  lengths_.clear();
  seen_.clear();
  wanted_.clear();
  path_rows_.clear();
  for (const bool extend : {true, false}) {
    for (size_t i = 0; i < batch.size(); ++i) {
      const StepSequence& part = batch[i];
      if (part.IsExtend() != extend) continue;
      const auto rows = static_cast<int64_t>(part.tokens.size());
      const RoundSlot& slot = slots.at(part.slot);
      sequences_.push_back(
          {i, part.pages, part.length + (extend ? 0 : slot.draft_rows()), rows, count()});
      ids_.insert(ids_.end(), part.tokens.begin(), part.tokens.end());
      for (int64_t row = FirstWanted(part.outputs, rows); row < rows; ++row)
        wanted_.push_back(sequences_.back().first + row);
      if (extend) {
        AddExtend(part);
      } else {
        AddDraft(part, slot);
      }
      CheckPages(part, sequences_.back(), page_rows);
    }
  }
  // Only now does the vector stay where it is.
  const int64_t* path = path_rows_.data();
  for (SeenRows& seen : seen_) {
    seen.single = path;
    path += seen.singles;
  }
}

void PassRows::AddExtend(const StepSequence& part) {
  const int64_t end = part.length + static_cast<int64_t>(part.tokens.size());
  for (int64_t row = part.length; row < end; ++row) {
    positions_.push_back(row);
    lengths_.push_back(end);
    seen_.push_back(SeenBefore(row + 1, row, part.visible));
  }
}

void PassRows::AddDraft(const StepSequence& part, const RoundSlot& slot) {
  for (size_t i = 0; i < part.parents.size(); ++i) {
    path_.clear();
    slot.AppendPath(part.parents[i], path_);
    path_.push_back(slot.draft_rows() + static_cast<int32_t>(i));
    const int64_t position = part.length - 1 + static_cast<int64_t>(path_.size());
    positions_.push_back(position);
    lengths_.push_back(position + 1);
    for (const int32_t node : path_) path_rows_.push_back(part.length + node);
    seen_.push_back(SeenBefore(part.length, position, part.visible));
    seen_.back().singles = static_cast<int64_t>(path_.size());
  }
}

// What a row sees, and what the pass writes, must lie somewhere.
void PassRows::CheckPages(const StepSequence& part, const NetSequence& rows,
                          int32_t page_rows) const {
  const auto check = [&](const RowRange& range) {
    if (range.empty()) return;
    AERIE_CHECK((range.end - 1) / page_rows < static_cast<int64_t>(part.pages.size()))
        << "row " << range.end - 1 << " lies behind " << part.pages.size() << " pages";
    for (int64_t page = range.begin / page_rows; page <= (range.end - 1) / page_rows; ++page) {
      AERIE_CHECK(part.pages[page] != kNoPage)
          << "page " << page << " holds rows that are seen or written, and is none";
    }
  };
  RowRange early, late = {rows.first_row, rows.first_row + rows.rows};
  for (int64_t row = rows.first; row < rows.first + rows.rows; ++row) {
    if (!seen_[row].early.empty()) {
      early = {seen_[row].early.begin, std::max(early.end, seen_[row].early.end)};
    }
    if (!seen_[row].late.empty()) late.begin = std::min(late.begin, seen_[row].late.begin);
  }
  check(early);
  check(late);
}

RowChoice::RowChoice(int64_t rows) : numbers_(rows) {
  std::iota(numbers_.begin(), numbers_.end(), 0);
}

RowChoice RowChoice::Wanted(const PassRows& rows) {
  RowChoice choice(0);
  choice.numbers_ = rows.wanted();
  if (choice.count() != rows.count()) choice.indices_ = Indices(choice.numbers_);
  return choice;
}

}  // namespace aerie
