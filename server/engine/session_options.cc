#include "server/engine/session_options.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/error_detail.h"
#include "common/status_macros.h"
#include "server/engine/kv_limits.h"
#include "server/engine/refusals.h"
#include "server/engine/tree_growth.h"

namespace aerie {
namespace {

constexpr int32_t kDefaultTopM = 64;
constexpr size_t kMostClientBytes = 64;

template <typename... Words>
absl::Status Contradiction(const Words&... words) {
  return InvalidError(kReasonOptionsInvalid, absl::StrCat(words...));
}

absl::Status CheckTree(const TreeShape& tree, const SessionOptions& options,
                       const DrafterSpec& spec) {
  if (tree.depth < 1 || tree.top_k < 2) {
    return Contradiction("the tree has depth ", tree.depth, " and top_k ", tree.top_k,
                         "; expected a depth of 1 or more and a top_k of 2 or more; leave the tree "
                         "out for a chain");
  }
  if (tree.top_k > spec.draft_vocab_size) {
    return Contradiction("the tree has top_k ", tree.top_k, "; expected at most ",
                         spec.draft_vocab_size, ", the drafter's vocabulary; ask for fewer");
  }
  const bool sampled = options.temperature > 0;
  const int64_t levels = tree.depth, width = tree.top_k;
  const int64_t most = sampled ? levels * width : width + (levels - 1) * width * width;
  if (tree.total_tokens < tree.depth || tree.total_tokens > most) {
    return Contradiction("the tree has total_tokens ", tree.total_tokens, " with depth ",
                         tree.depth, " and top_k ", tree.top_k, "; expected ", tree.depth, "..",
                         most, ", ",
                         sampled ? "depth .. depth * top_k at temperature > 0"
                                 : "depth .. top_k + (depth - 1) * top_k * top_k",
                         "; change one of the three");
  }
  if (tree.total_tokens > options.max_k) {
    return Contradiction("the tree has total_tokens ", tree.total_tokens, " and max_k is ",
                         options.max_k,
                         "; expected total_tokens of at most max_k; lower the one "
                         "or raise the other");
  }
  if (options.adaptive_k) {
    return Contradiction("adaptive_k is set together with a tree of ", tree.total_tokens,
                         " nodes; expected a chain, because its length is what adaptive_k chooses; "
                         "leave out one of the two");
  }
  if (sampled && options.top_m < tree.top_k) {
    return Contradiction("the tree has top_k ", tree.top_k, " and is sampled from top_m ",
                         options.top_m,
                         " tokens; expected a top_m of at least top_k; raise the "
                         "one or lower the other");
  }
  return absl::OkStatus();
}

// Puts the default in place of an open top_m.
absl::Status SettleSampling(const DrafterSpec& spec, SessionOptions* options) {
  if (!std::isfinite(options->temperature) || options->temperature < 0) {
    return Contradiction("temperature is ", options->temperature,
                         "; expected 0, for the most likely tokens, or a finite number above it; "
                         "send the target's temperature");
  }
  if (options->temperature == 0) {
    if (options->top_m == 0 && options->probs == ProposalProbs::kNone) return absl::OkStatus();
    return Contradiction("top_m is ", options->top_m, " and proposal_probs are ",
                         options->probs == ProposalProbs::kNone ? "not asked for" : "asked for",
                         " at temperature 0; expected a temperature above 0, since nothing is "
                         "drawn without one; set it, or leave out both");
  }
  if (options->top_m < 0 || options->top_m > spec.draft_vocab_size) {
    return Contradiction("top_m is ", options->top_m, "; expected 1..", spec.draft_vocab_size,
                         ", the drafter's vocabulary, or 0 for the default; ask for fewer");
  }
  if (options->top_m == 0) options->top_m = std::min(kDefaultTopM, spec.draft_vocab_size);
  return absl::OkStatus();
}

absl::Status CheckBeginning(const SessionOptions& options, const EngineOptions& engine) {
  if (options.start < 0 || options.start >= engine.max_context) {
    return Contradiction("start is ", options.start, "; expected 0..", engine.max_context - 1,
                         ", below the server's max_context; decode that sequence without drafts");
  }
  if (options.start > 0 && !options.fork_of.empty()) {
    return Contradiction("start is ", options.start, " and fork is session \"", options.fork_of,
                         "\"; expected one of the two at most, since a fork starts where its "
                         "session did; leave out the other");
  }
  if (options.fork_length < 0 || (options.fork_length > 0 && options.fork_of.empty())) {
    return Contradiction("the fork has length ", options.fork_length, " and session \"",
                         options.fork_of,
                         "\"; expected rows of a session that is named; name it, or send 0");
  }
  if (options.client.size() > kMostClientBytes) {
    return Contradiction("the client's name has ", options.client.size(),
                         " bytes; expected at most ", kMostClientBytes, "; shorten it");
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
  if (asked.max_k < 0) {
    return InvalidError(kReasonKOutOfRange,
                        absl::StrCat("max_k is ", asked.max_k, "; expected 0..", engine.max_k,
                                     "; leave it out for the server's limit"));
  }
  SessionOptions options = asked;
  options.max_k = asked.max_k == 0 ? engine.max_k : std::min(asked.max_k, engine.max_k);
  AERIE_RETURN_IF_ERROR(SettleSampling(spec, &options));
  if (options.tree.has_value()) AERIE_RETURN_IF_ERROR(CheckTree(*options.tree, options, spec));
  AERIE_RETURN_IF_ERROR(CheckBeginning(options, engine));
  AERIE_RETURN_IF_ERROR(CheckDraftRows(options, engine, store));
  return options;
}

}  // namespace aerie
