#include "server/kernels/seen_rows.h"

#include <algorithm>

namespace aerie {
namespace {

// `ranges` as few ranges that do not touch each other, ascending.
void Merge(std::vector<RowRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const RowRange& a, const RowRange& b) { return a.begin < b.begin; });
  size_t merged = 0;
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin <= ranges[merged].end) {
      ranges[merged].end = std::max(ranges[merged].end, ranges[i].end);
    } else {
      ranges[++merged] = ranges[i];
    }
  }
  ranges.resize(std::min(ranges.size(), merged + 1));
}

}  // namespace

int64_t CutIntoChunks(const SeenRows* seen, int64_t count, int64_t page_rows,
                      std::vector<RowRange>& ranges, std::vector<RowChunk>& chunks) {
  ranges.clear();
  for (int64_t i = 0; i < count; ++i) {
    for (const RowRange& range : {seen[i].early, seen[i].late}) {
      if (!range.empty()) ranges.push_back(range);
    }
    for (int64_t j = 0; j < seen[i].singles; ++j)
      ranges.push_back({seen[i].single[j], seen[i].single[j] + 1});
  }
  Merge(ranges);
  chunks.clear();
  int64_t rows = 0;
  for (const RowRange& range : ranges) {
    for (int64_t begin = range.begin; begin < range.end;) {
      const int64_t page_end = (begin / page_rows + 1) * page_rows;
      const int64_t end = std::min({range.end, page_end, begin + kMaxChunkRows});
      chunks.push_back({{begin, end}, rows});
      rows += end - begin;
      begin = end;
    }
  }
  return rows;
}

bool SeesAll(const SeenRows& seen, const RowRange& rows) {
  if (seen.early.Covers(rows) || seen.late.Covers(rows)) return true;
  return rows.end - rows.begin == 1 &&
         std::binary_search(seen.single, seen.single + seen.singles, rows.begin);
}

void MarkSeen(const SeenRows& seen, const RowRange& rows, bool* sees) {
  std::fill(sees, sees + (rows.end - rows.begin), false);
  const auto mark = [&](const RowRange& range) {
    const int64_t begin = std::max(range.begin, rows.begin), end = std::min(range.end, rows.end);
    for (int64_t row = begin; row < end; ++row) sees[row - rows.begin] = true;
  };
  mark(seen.early);
  mark(seen.late);
  for (int64_t j = 0; j < seen.singles; ++j) mark({seen.single[j], seen.single[j] + 1});
}

}  // namespace aerie
