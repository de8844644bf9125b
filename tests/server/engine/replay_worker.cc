#include "tests/server/engine/replay_worker.h"

#include <algorithm>
#include <utility>

#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reference_draft.h"
#include "tests/testing/sequences.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

// Rows that one call adds, at most.
constexpr int64_t kMostNews = 14;

}  // namespace

SessionOptions ReplayWorker::AnyOptions() {
  SessionOptions options;
  const bool sampled = Draw(0, 1) == 0;
  if (Draw(0, 1) == 0) {
    options.tree = sampled ? TreeShape{3, 3, 7} : TreeShape{4, 3, 8};
    if (Draw(0, 1) == 0) options.tree = TreeShape{2, 4, 6};
  }
  if (sampled) {
    options.temperature = 0.25f * static_cast<float>(Draw(1, 8));
    options.top_m = Draw(4, 61);
    options.seed = static_cast<uint64_t>(Draw(0, 3));
    options.probs = static_cast<ProposalProbs>(Draw(0, 2));
  }
  return options;
}

ReplaySequence ReplayWorker::NewSequence() {
  static constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
  ReplaySequence sequence;
  sequence.manifest = FittingManifest(FakeSpec(), kDTypes[Draw(0, 2)]);
  sequence.options = AnyOptions();
  if (Draw(0, 3) == 0) sequence.options.start = sequence.start = Draw(0, 20);
  const auto opened = driver_->Open(sequence.manifest, sequence.options);
  EXPECT_THAT(opened, IsOk());
  if (opened.ok()) sequence.id = opened->session_id;
  return sequence;
}

bool ReplayWorker::Fork(const ReplaySequence& source, ReplaySequence* fork) {
  ReplaySequence sequence;
  sequence.manifest = source.manifest;
  sequence.options = AnyOptions();
  sequence.start = source.start;
  sequence.held = static_cast<size_t>(Draw(0, static_cast<int>(source.held)));
  sequence.rows.assign(source.rows.begin(),
                       source.rows.begin() + static_cast<int64_t>(sequence.held));
  SessionOptions options = sequence.options;
  options.fork_of = source.id;
  options.fork_length = source.start + static_cast<int64_t>(sequence.held);
  const auto opened = driver_->Open(sequence.manifest, options);
  if (!opened.ok()) {
    EXPECT_THAT(opened, StatusIs(absl::StatusCode::kFailedPrecondition));
    return false;
  }
  EXPECT_EQ(opened->length, options.fork_length);
  sequence.id = opened->session_id;
  *fork = std::move(sequence);
  return true;
}

bool ReplayWorker::IsFull(const ReplaySequence& sequence) const {
  return sequence.start + static_cast<int64_t>(sequence.rows.size()) + kMostNews >
         engine_.max_context;
}

std::vector<int32_t> ReplayWorker::AnyPath(const DraftTree& tree) {
  std::vector<int32_t> path;
  if (tree.empty()) return path;
  for (int32_t node = Draw(0, tree.size()); node > 0;
       node = tree.parents[static_cast<size_t>(node) - 1]) {
    path.insert(path.begin(), tree.tokens[static_cast<size_t>(node) - 1]);
  }
  return path;
}

ReplayCall ReplayWorker::Call(ReplaySequence* sequence) {
  ReplayCall call;
  call.before = *sequence;
  std::vector<SentRow>& rows = sequence->rows;
  size_t base = sequence->held;
  size_t known = rows.size();  // the call goes on from there
  if (rows.size() > 0 && Draw(0, 4) == 0) {
    base = static_cast<size_t>(Draw(0, static_cast<int>(base)));
    // Sometimes what was there is sent again.
    if (Draw(0, 1) == 0) known = base;
  }
  rows.resize(known);
  const uint64_t variant = static_cast<uint64_t>(Draw(0, 1 << 20));
  if (known == sequence->context.size()) {
    for (const int32_t token : AnyPath(sequence->proposal)) rows.push_back({token, variant});
  }
  for (int i = Draw(0, 4); i > 0; --i) {
    rows.push_back({Draw(0, 100), variant + static_cast<uint64_t>(i)});
  }
  std::vector<int32_t> tokens;
  std::vector<uint64_t> variants;
  for (size_t i = base; i < rows.size(); ++i) {
    tokens.push_back(rows[i].token);
    variants.push_back(rows[i].variant);
  }
  Judge(base, sequence, &call);

  DraftCall draft;
  draft.sequence = sequence->id;
  draft.base_length = sequence->start + static_cast<int64_t>(base);
  const OwnedRows bytes = MakeRows(sequence->manifest, draft.base_length, variants);
  draft.rows = bytes.view;
  draft.rows_owner = bytes.bytes;
  draft.k = tokens.empty() ? 0 : Draw(0, engine_.max_k);
  draft.tokens = std::move(tokens);
  call.k = draft.k;
  call.reply = driver_->Draft(std::move(draft));
  return call;
}

// The rule in its plainest form: the rows of the call against what the proposal was made for.
void ReplayWorker::Judge(size_t base, ReplaySequence* sequence, ReplayCall* call) {
  const DraftTree& tree = sequence->proposal;
  if (tree.empty()) return;
  const std::vector<SentRow>& rows = sequence->rows;
  const std::vector<int32_t>& context = sequence->context;
  bool differs = false;
  for (size_t i = base; i < std::min(rows.size(), context.size()); ++i) {
    differs = differs || rows[i].token != context[i];
  }
  int32_t node = 0;
  for (size_t i = context.size(); i < rows.size() && node >= 0; ++i) {
    int32_t next = -1;
    for (int32_t child = tree.size(); child > 0; --child) {
      const auto c = static_cast<size_t>(child) - 1;
      if (tree.parents[c] == node && tree.tokens[c] == rows[i].token) next = child;
    }
    node = next;
    call->accepted += node > 0 ? 1 : 0;
  }
  call->judged = !differs && rows.size() > context.size() && rows.size() > base;
  if (differs || call->judged) sequence->proposal = {};
}

void ReplayWorker::TakeAnswer(const ReplayCall& call, ReplaySequence* sequence) {
  const auto result = call.reply->value();
  if (!result.ok()) {
    const ErrorDetail detail = DetailOf(result.status());
    *sequence = call.before;
    if (detail.reason == kReasonKvMemory) {
      ASSERT_EQ(detail.resend_from, std::nullopt) << "the session is as it was";
    } else if (detail.reason == kReasonEvicted || detail.reason == kReasonPassFailed) {
      ASSERT_TRUE(detail.resend_from.has_value());
      const int64_t held = *detail.resend_from - sequence->start;
      ASSERT_GE(held, 0);
      ASSERT_LE(held, static_cast<int64_t>(sequence->held));
      sequence->held = static_cast<size_t>(held);
    } else {
      FAIL() << result.status();
    }
    return;
  }
  sequence->held = sequence->rows.size();
  ASSERT_EQ(result->length, sequence->start + static_cast<int64_t>(sequence->held));
  ASSERT_EQ(result->tree, Reference(*sequence, call.k));
  ASSERT_EQ(result->accepted.has_value(), call.judged);
  if (call.judged) {
    ASSERT_EQ(*result->accepted, call.accepted);
  }
  if (call.k == 0) return;
  sequence->proposal = result->tree;
  sequence->context.clear();
  for (const SentRow& row : sequence->rows) sequence->context.push_back(row.token);
}

DraftTree ReplayWorker::Reference(const ReplaySequence& sequence, int32_t k) const {
  std::vector<int32_t> tokens;
  std::vector<uint64_t> variants;
  for (const SentRow& row : sequence.rows) {
    tokens.push_back(row.token);
    variants.push_back(row.variant);
  }
  const OwnedRows rows = MakeRows(sequence.manifest, sequence.start, variants);
  const VisibleRows visible{sequence.start, engine_.draft_sink, engine_.draft_window};
  return ReferenceDraft({.tokens = tokens, .rows = rows.view, .visible = visible}, sequence.options,
                        k);
}

}  // namespace aerie
