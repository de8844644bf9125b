#include "server/engine/kv_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace aerie {
namespace {

// Pages that `rows` rows can touch, wherever in a page the first one lies.
int64_t PagesTouched(int64_t rows, int64_t page_rows) {
  return rows == 0 ? 0 : (rows + 2 * page_rows - 2) / page_rows;
}

}  // namespace

int64_t RollbackRows(const EngineOptions& options) { return options.max_k + int64_t{1}; }

int64_t MostPagesOfSession(const EngineOptions& options, int32_t page_rows, int64_t draft_rows) {
  const int64_t all = (options.max_context + draft_rows + page_rows - 1) / page_rows;
  if (options.draft_window == 0) return all;
  // The sink begins wherever the session does; its last page is kept whole.
  const int64_t sink = PagesTouched(int64_t{options.draft_sink} + 1, page_rows);
  const int64_t recent =
      PagesTouched(int64_t{options.draft_window} + RollbackRows(options) +
                       std::min(options.max_rows_per_pass, options.max_rows_per_call) + draft_rows,
                   page_rows);
  return std::min(all, sink + recent);
}

absl::Status CheckKvFits(const EngineOptions& options, const KvStore& store) {
  const int64_t needed =
      MostPagesOfSession(options, store.page_rows, /*draft_rows=*/options.max_k - 1);
  if (needed <= store.num_pages) return absl::OkStatus();
  const std::string rows =
      options.draft_window == 0
          ? absl::StrCat("the rows of one session of --max-context ", options.max_context)
          : absl::StrCat("what one session of --max-context ", options.max_context,
                         " holds at --draft-window ", options.draft_window, ", --draft-sink ",
                         options.draft_sink, " and --max-rows-per-pass ",
                         options.max_rows_per_pass);
  return absl::InvalidArgumentError(
      absl::StrCat("--kv-memory has room for ", store.num_pages, " pages of ", store.page_rows,
                   " rows of draft KV; expected at least ", needed, ", ", rows,
                   " with a draft of --max-k ", options.max_k, "; give --kv-memory ",
                   needed * store.page_bytes, " bytes or more, or lower --max-context"));
}

}  // namespace aerie
