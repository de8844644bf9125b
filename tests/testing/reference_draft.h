// What an engine above FakeDraftModel must answer, worked out the plain way: one fresh drafter for
// one sequence, all committed rows in one pass, and the searches as they are written down, with
// nothing pruned and nothing remembered.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/draft_tree.h"
#include "common/hidden_rows.h"
#include "server/engine/draft_call.h"
#include "server/engine/draft_model.h"
#include "tests/testing/fake_draft_model.h"

namespace aerie {

// A sequence from its first row on, which is row visible.start. rows[i] belongs with tokens[i].
struct Replay {
  absl::Span<const int32_t> tokens;
  HiddenRows rows;
  VisibleRows visible;
};

// A fresh drafter that holds the rows of one sequence and nothing else.
class SoloDrafter {
 public:
  explicit SoloDrafter(const Replay& replay);
  ~SoloDrafter();

  // Behind the last row; as many tokens as there are.
  const RowOutput& root() const { return root_; }
  // Behind a new draft row under draft row `parent`, -1: the root. Rows are counted from 0.
  RowOutput Add(int32_t token, int32_t parent);

 private:
  StepOutput Step(StepSequence part);

  std::unique_ptr<FakeDraftModel> model_;
  std::vector<PageId> pages_;
  const Replay replay_;
  RowOutput root_;
};

// The proposal for a call that asks for k tokens, of a session with `options`: in force, so top_m
// is not 0 at temperature > 0.
DraftTree ReferenceDraft(const Replay& replay, const SessionOptions& options, int32_t k);

}  // namespace aerie
