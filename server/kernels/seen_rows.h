// Which rows of a sequence a query sees, and how they are cut into pieces that lie together.
#pragma once

#include <cstdint>
#include <vector>

namespace aerie {

struct RowRange {
  int64_t begin = 0, end = 0;  // end excluded
  bool empty() const { return begin >= end; }
  bool Covers(const RowRange& other) const { return begin <= other.begin && other.end <= end; }
};

// Two ranges and single rows behind them; no row is in two of these.
struct SeenRows {
  RowRange early, late;             // either may be empty
  const int64_t* single = nullptr;  // row indices, ascending
  int64_t singles = 0;
};

// Rows that follow each other in one page.
struct RowChunk {
  RowRange rows;
  int64_t scores = 0;  // how many rows stand in the chunks before
};

inline constexpr int64_t kMaxChunkRows = 32;

// All rows that at least one of `seen` [count] sees, in ascending order, as chunks of at most
// kMaxChunkRows; returns their number. `ranges` is scratch.
int64_t CutIntoChunks(const SeenRows* seen, int64_t count, int64_t page_rows,
                      std::vector<RowRange>& ranges, std::vector<RowChunk>& chunks);

// Whether all of `rows` are seen.
bool SeesAll(const SeenRows& seen, const RowRange& rows);
// Sets sees[i] to whether row rows.begin + i is seen.
void MarkSeen(const SeenRows& seen, const RowRange& rows, bool* sees);

}  // namespace aerie
