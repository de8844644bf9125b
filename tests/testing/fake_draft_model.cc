#include "tests/testing/fake_draft_model.h"

#include <limits>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/check.h"
#include "common/wiring.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

// The finaliser of splitmix64: every bit of both inputs moves every bit of the result.
uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15ull + b + 0x632be59bd9b4e019ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

uint64_t HashBytes(std::string_view bytes, uint64_t seed) {
  uint64_t hash = Mix(seed, bytes.size());
  for (const char byte : bytes) hash = Mix(hash, static_cast<unsigned char>(byte));
  return hash;
}

constexpr uint64_t kDraftFeed = 0xd1;
constexpr uint64_t kOutput = 0x07;

// The drafter's own vocabulary: other ids than the target's, and not in its order.
int32_t TargetId(uint64_t draft_id, int32_t vocab_size) {
  return static_cast<int32_t>((draft_id * 5 + 3) % static_cast<uint64_t>(vocab_size));
}

}  // namespace

DrafterSpec FakeSpec() {
  DrafterSpec spec;
  spec.name = "fake-drafter";
  spec.version = "fake-1";
  auto wiring =
      Wiring::Create({Capture::Boundary(1), Capture::Boundary(4), Capture::Boundary(7)}, 8);
  AERIE_CHECK(wiring.ok());
  spec.wiring = *wiring;
  spec.target_num_layers = 8;
  spec.target_hidden_size = 4;
  spec.vocab_size = 101;
  spec.draft_vocab_size = 61;
  spec.hidden_size = 6;
  spec.weight_bytes = 4096;
  spec.settings = {{"rope_theta", "10000", "config.json: rope_theta"}};
  return spec;
}

FakeDraftModel::FakeDraftModel(FakeDraftModelOptions options)
    : options_(std::move(options)),
      store_(static_cast<size_t>(options_.kv_store.num_pages) *
             static_cast<size_t>(options_.kv_store.page_rows)) {}

FakeDraftModel::~FakeDraftModel() {
  EXPECT_EQ(open_slots(), 0) << "slots were left in use when the drafter went away";
}

void FakeDraftModel::CheckThread() const {
  if (options_.runs_on_any_thread) return;
  if (!thread_.has_value()) thread_ = std::this_thread::get_id();
  EXPECT_EQ(*thread_, std::this_thread::get_id()) << "the drafter belongs to one thread";
}

void FakeDraftModel::CopyPage(PageId from, PageId to) {
  MutexLock lock(&mutex_);
  CheckThread();
  const PageId pages = options_.kv_store.num_pages;
  ASSERT_TRUE(0 <= from && from < pages && 0 <= to && to < pages && from != to)
      << from << " to " << to;
  ++pages_copied_;
  const auto rows = static_cast<size_t>(options_.kv_store.page_rows);
  for (size_t i = 0; i < rows; ++i) {
    store_[static_cast<size_t>(to) * rows + i] = store_[static_cast<size_t>(from) * rows + i];
  }
}

void FakeDraftModel::ReleaseSlot(SlotId slot) {
  MutexLock lock(&mutex_);
  CheckThread();
  EXPECT_GE(slot, 0);
  slots_.erase(slot);
}

FakeDraftModel::StoredRow& FakeDraftModel::At(const StepSequence& part, int64_t row) {
  const int64_t page_rows = options_.kv_store.page_rows;
  const PageId page = part.pages[static_cast<size_t>(row / page_rows)];
  return store_[static_cast<size_t>(page * page_rows + row % page_rows)];
}

uint64_t FakeDraftModel::Attend(const StepSequence& part, int64_t position, int64_t committed,
                                absl::Span<const int64_t> ancestors) {
  uint64_t seen = 1;
  for (int64_t row = part.visible.start; row < committed; ++row) {
    if (!part.visible.Sees(position, row)) continue;
    const StoredRow& stored = At(part, row);
    EXPECT_EQ(stored.row, row) << "another row lies where this one should, slot " << part.slot;
    EXPECT_FALSE(stored.guess) << "row " << row << " is a guess, slot " << part.slot;
    seen = Mix(seen, stored.content);
  }
  for (const int64_t row : ancestors) {
    const StoredRow& stored = At(part, row);
    EXPECT_TRUE(stored.guess && stored.row == row) << "draft row " << row << ", slot " << part.slot;
    seen = Mix(seen, stored.content);
  }
  return seen;
}

FakeDraftModel::State FakeDraftModel::ExtendBy(const StepSequence& part, size_t i) {
  const int64_t row = part.length + static_cast<int64_t>(i);
  const uint64_t feed = HashBytes(part.aux.Slice(static_cast<int64_t>(i), 1).bytes(),
                                  static_cast<uint64_t>(part.aux.dtype()));
  const uint64_t own =
      Mix(Mix(feed, static_cast<uint64_t>(row)), static_cast<uint64_t>(part.tokens[i]));
  const uint64_t content = Mix(Attend(part, row, /*committed=*/row, {}), own);
  At(part, row) = {content, row, /*guess=*/false};
  return {.content = content, .row = row};
}

FakeDraftModel::State FakeDraftModel::DraftRow(const StepSequence& part, size_t i,
                                               const Slot& slot) {
  const int32_t parent_number = part.parents[i];
  const State& parent =
      parent_number < 0 ? slot.root : slot.drafts[static_cast<size_t>(parent_number)];
  State state;
  state.depth = parent.depth + 1;
  state.row = part.length + static_cast<int64_t>(slot.drafts.size());
  const int64_t position = part.length - 1 + state.depth;
  // Nothing of where the row lies or how many others the tree has: a node drafts as in a chain.
  const uint64_t own = Mix(Mix(Mix(parent.content, kDraftFeed), static_cast<uint64_t>(position)),
                           static_cast<uint64_t>(part.tokens[i]));
  state.content = Mix(Attend(part, position, part.length, parent.ancestors), own);
  state.ancestors = parent.ancestors;
  state.ancestors.push_back(state.row);
  At(part, state.row) = {state.content, state.row, /*guess=*/true};
  return state;
}

StepOutput FakeDraftModel::Run(const StepSequence& part, int32_t top_k) {
  Slot& slot = slots_[part.slot];
  std::vector<State> states;
  if (part.IsExtend()) {
    for (size_t i = 0; i < part.tokens.size(); ++i) states.push_back(ExtendBy(part, i));
    slot = Slot();
    slot.length = part.length + static_cast<int64_t>(part.tokens.size());
    slot.root = states.back();
    slot.root.wanted = part.outputs != Outputs::kNone;
  } else {
    for (size_t i = 0; i < part.tokens.size(); ++i) {
      states.push_back(DraftRow(part, i, slot));
      slot.drafts.push_back(states.back());
      slot.drafts.back().wanted = part.outputs == Outputs::kEvery ||
                                  (part.outputs == Outputs::kLast && i + 1 == part.tokens.size());
    }
  }
  if (part.outputs == Outputs::kNone) states.clear();
  if (part.outputs == Outputs::kLast) states.erase(states.begin(), states.end() - 1);
  StepOutput output;
  for (size_t i = 0; i < states.size(); ++i) {
    output.rows.push_back(Score(states[i], top_k, part.probes.empty() ? -1 : part.probes[i]));
  }
  return output;
}

RowOutput FakeDraftModel::Score(const State& state, int32_t top_k, int32_t probe) const {
  const auto draft_vocab = static_cast<uint64_t>(options_.spec.draft_vocab_size);
  const bool probed = probe >= 0;
  RowOutput output;
  if (probed) output.probe_log_prob = -std::numeric_limits<float>::infinity();
  uint64_t draw = Mix(state.content, kOutput);
  std::vector<bool> taken(draft_vocab, false);
  float log_prob = -0.125f;
  // Best first, and the same beginning however many are asked for.
  for (size_t count = 0; count < (probed ? draft_vocab : static_cast<size_t>(top_k));) {
    const uint64_t id = draw % draft_vocab;
    draw = Mix(draw, kOutput);
    if (taken[id]) continue;
    taken[id] = true;
    log_prob -= static_cast<float>(draw % 1024 + 1) / 1024.0f;
    const int32_t token = TargetId(id, options_.spec.vocab_size);
    if (count++ < static_cast<size_t>(top_k)) output.top.push_back({token, log_prob});
    if (token == probe) output.probe_log_prob = log_prob;
  }
  return output;
}

absl::StatusOr<std::vector<StepOutput>> FakeDraftModel::Step(absl::Span<const StepSequence> batch,
                                                             int32_t top_k) {
  EXPECT_FALSE(in_a_pass_.exchange(true)) << "two passes at the same time";
  const absl::Cleanup left = [this] { in_a_pass_ = false; };
  if (options_.before_step) options_.before_step(batch);
  MutexLock lock(&mutex_);
  CheckThread();
  if (!next_failure_.ok()) return std::exchange(next_failure_, absl::OkStatus());
  if (!KeepsPromises(batch, top_k)) {
    return absl::InternalError("the engine broke a promise to the fake drafter");
  }
  last_top_k_ = top_k;
  std::vector<StepOutput> outputs;
  std::vector<PassPart> parts;
  for (const StepSequence& part : batch) {
    outputs.push_back(Run(part, top_k));
    parts.push_back({part.slot, part.length, static_cast<int64_t>(part.tokens.size()),
                     !part.IsExtend(), part.outputs});
  }
  passes_.push_back(std::move(parts));
  if (options_.after_step) options_.after_step(outputs);
  return outputs;
}

void FakeDraftModel::FailNextPass(absl::Status status) {
  MutexLock lock(&mutex_);
  next_failure_ = std::move(status);
}

int32_t FakeDraftModel::open_slots() const {
  MutexLock lock(&mutex_);
  return static_cast<int32_t>(slots_.size());
}

int64_t FakeDraftModel::pages_copied() const {
  MutexLock lock(&mutex_);
  return pages_copied_;
}

int32_t FakeDraftModel::last_top_k() const {
  MutexLock lock(&mutex_);
  return last_top_k_;
}

std::vector<std::vector<FakeDraftModel::PassPart>> FakeDraftModel::passes() const {
  MutexLock lock(&mutex_);
  return passes_;
}

}  // namespace aerie
