// One draft call seen from the worker: what goes in, what comes out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "aerie/v1/draft.pb.h"
#include "common/adaptive_k.h"
#include "common/draft_tree.h"
#include "common/hidden_rows.h"

namespace aerie {

// Consecutive rows: tokens[i] is the token that follows the hidden state of row i.
struct RowBatch {
  absl::Span<const int32_t> tokens;
  HiddenRows rows;
};

struct DraftInput {
  int64_t base_length = 0;           // row index of the first row
  absl::Span<const int32_t> tokens;  // one a row
  HiddenRows rows;
  int32_t k = 0;                           // 0 commits without drafting
  std::optional<int32_t> accepted;         // what the worker counted of the last proposal
  std::optional<VerifyCost> verify_cost;   // of the last verification; for adaptive k
  std::optional<absl::Duration> deadline;  // of this call; the client's when unset
};

// Where the server's time went, in the last message of a call.
struct ServerTiming {
  absl::Duration queue, extend, step, total;
};

struct DraftOutcome {
  absl::Status status;  // not OK: no proposal, go on without
  DraftTree tree;
  std::vector<int32_t> positions;   // of tree.tokens, in the sequence
  std::string ancestor_mask;        // DraftTree::AncestorMask(), when the session asked for it
  TreeLinks links;                  // likewise
  int64_t length = 0;               // rows that the session holds; only when OK
  std::optional<int32_t> accepted;  // of the last proposal, as the server found
  v1::NoDraftReason no_draft_reason = v1::NO_DRAFT_REASON_UNSPECIFIED;
  v1::ProposalMethod method = v1::PROPOSAL_METHOD_UNSPECIFIED;
  std::optional<KChoice> k_choice;  // of a session with adaptive_k
  ServerTiming timing;
  // Set when the session lacks rows before `base_length` (they never came, were evicted, or the
  // session was lost) and no RowSource could give them: call again from here.
  std::optional<int64_t> resend_from;
  int attempts = 0;  // messages sent, repeats included
  int resyncs = 0;   // times that lost rows were sent again
};

// Takes over what one answer says. INTERNAL: it contradicts itself.
absl::Status ReadAnswer(const v1::DraftResponse& answer, DraftOutcome* outcome);

}  // namespace aerie
