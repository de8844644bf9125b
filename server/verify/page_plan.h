// Which pages of a model's store hold the rows of which sequence, for programs that score recorded
// sequences: all rows are known beforehand, so pages are dealt out once.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/engine/draft_model.h"

namespace aerie {

// Sequences that fit the store together. Indices are of the caller's list.
struct PageGroup {
  std::vector<size_t> members;
  std::vector<std::vector<PageId>> pages;  // of each member: entry r holds rows r * page_rows ...
};

// `rows`: how many each sequence needs, in the caller's order. Every sequence is in one group.
// RESOURCE_EXHAUSTED when one alone does not fit.
absl::StatusOr<std::vector<PageGroup>> PlanPages(const KvStore& store,
                                                 absl::Span<const int64_t> rows);

}  // namespace aerie
