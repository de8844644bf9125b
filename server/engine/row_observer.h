// The rows themselves, for who looks at more than counts: the live guard, a recording.
//
// Rows are told once the drafter has read all of a call's, before it drafts from them: a call that
// fails later, a rollback or an eviction bring the same rows again. Nothing that an observer does
// changes a draft.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/hidden_rows.h"
#include "common/manifest.h"
#include "server/engine/round_observer.h"

namespace aerie {

// The eye on one session, or on one stateless call; ends with it. Engine thread only. Must not
// block.
class RowWatch {
 public:
  virtual ~RowWatch() = default;
  // Rows base_length .. base_length + rows.rows() - 1, with the token of each. `rows` is good until
  // the function returns.
  virtual void OnRows(int64_t base_length, absl::Span<const int32_t> tokens, const HiddenRows& rows,
                      absl::Time now) = 0;
  virtual void OnJudgement(const Judgement& judgement, absl::Time now) = 0;
};

// What a watch is asked for.
struct WatchedRows {
  const std::string& client;  // as it calls itself; empty: it does not, or the call is stateless
  const Manifest& manifest;
  // The first row that can come. Those before it are a fork's, or were never sent.
  int64_t first_row = 0;
  bool stateless = false;
};

// Rows to be scored once more, as the first rows of a sequence of their own at these positions.
struct Trial {
  int64_t base_length = 0;
  std::vector<int32_t> tokens;
  HiddenRows rows;                         // one for each token
  std::shared_ptr<const void> rows_owner;  // keeps the bytes of `rows` alive
};

// Engine thread only. Must not block. Outlives its watches.
class RowObserver {
 public:
  virtual ~RowObserver() = default;
  // Null: it does not want to see these.
  virtual std::unique_ptr<RowWatch> Watch(const WatchedRows& rows, absl::Time now) = 0;

  // Asked when the engine has nothing else to do. Each is answered before the next is asked for.
  virtual std::optional<Trial> TakeTrial() { return std::nullopt; }
  // Of each row but the last the log-probability of the next row's token, natural log; minus
  // infinity: outside the draft vocabulary. Empty: the trial could not be run.
  virtual void OnTrial(absl::Span<const float> log_probs, absl::Time now) {
    static_cast<void>(log_probs), static_cast<void>(now);
  }
};

}  // namespace aerie
