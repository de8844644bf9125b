#include "server/verify/page_plan.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace aerie {

absl::StatusOr<std::vector<PageGroup>> PlanPages(const KvStore& store,
                                                 absl::Span<const int64_t> rows) {
  std::vector<PageGroup> groups;
  int64_t used = store.num_pages;  // as if a full group came before
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t needed = (rows[i] + store.page_rows - 1) / store.page_rows;
    if (needed > store.num_pages) {
      return absl::ResourceExhaustedError(
          absl::StrCat("a sequence needs ", rows[i], " rows of draft KV and the store holds ",
                       int64_t{store.num_pages} * store.page_rows,
                       "; expected room for the longest sequence; record shorter ones or make the "
                       "store larger"));
    }
    if (used + needed > store.num_pages) {
      groups.emplace_back();
      used = 0;
    }
    std::vector<PageId> pages;
    for (int64_t page = 0; page < needed; ++page) {
      pages.push_back(static_cast<PageId>(used + page));
    }
    used += needed;
    groups.back().members.push_back(i);
    groups.back().pages.push_back(std::move(pages));
  }
  return groups;
}

}  // namespace aerie
