#include "server/engine/session_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/error_detail.h"
#include "common/status_macros.h"
#include "server/engine/kv_limits.h"
#include "server/engine/refusals.h"
#include "server/engine/tree_growth.h"

namespace aerie {
namespace {

constexpr int32_t kDefaultTopM = 64;

template <typename... Words>
absl::Status Contradiction(const Words&... words) {
  return InvalidError(kReasonOptionsInvalid, absl::StrCat(words...));
}

// What the drafter's vocabulary has room for.
absl::Status CheckVocabulary(const SessionOptions& options, const DrafterSpec& spec) {
  if (options.top_m > spec.draft_vocab_size) {
    return Contradiction("options.sampling.top_m is ", options.top_m, "; expected 1..",
                         spec.draft_vocab_size,
                         ", the drafter's vocabulary, or 0 for the default; ask for fewer");
  }
  if (options.tree.has_value() && options.tree->top_k > spec.draft_vocab_size) {
    return Contradiction("options.tree.top_k is ", options.tree->top_k, "; expected at most ",
                         spec.draft_vocab_size, ", the drafter's vocabulary; ask for fewer");
  }
  return absl::OkStatus();
}

// A round of the session must fit into the store beside a full context, or it would be refused for
// want of memory for ever.
absl::Status CheckDraftRows(const SessionOptions& options, const EngineOptions& engine,
                            const KvStore& store) {
  const int64_t rows = ShapeFor(options, options.max_k).DraftRows();
  const int64_t needed = MostPagesOfSession(engine, store.page_rows, rows);
  if (needed <= store.num_pages) return absl::OkStatus();
  return Contradiction("a draft of the session computes up to ", rows,
                       " rows, which with --max-context ", engine.max_context, " takes ", needed,
                       " pages of draft KV; expected at most ", store.num_pages,
                       ", which --kv-memory has room for; lower depth or top_k");
}

}  // namespace

absl::StatusOr<SessionOptions> SettleOptions(const SessionOptions& asked,
                                             const EngineOptions& engine, const DrafterSpec& spec,
                                             const KvStore& store) {
  AERIE_RETURN_IF_ERROR(asked.Validate());
  AERIE_RETURN_IF_ERROR(CheckVocabulary(asked, spec));
  SessionOptions options = asked;
  options.max_k = asked.max_k == 0 ? engine.max_k : std::min(asked.max_k, engine.max_k);
  if (options.temperature > 0 && options.top_m == 0) {
    options.top_m = std::min(kDefaultTopM, spec.draft_vocab_size);
  }
  // Again: what was left open may contradict what was asked for.
  AERIE_RETURN_IF_ERROR(options.Validate());
  if (options.start >= engine.max_context) {
    return Contradiction("start is ", options.start, "; expected 0..", engine.max_context - 1,
                         ", below the server's max_context; decode that sequence without drafts");
  }
  AERIE_RETURN_IF_ERROR(CheckDraftRows(options, engine, store));
  return options;
}

}  // namespace aerie
