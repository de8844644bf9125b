#include "tests/testing/fake_draft_model.h"

#include <set>
#include <string_view>
#include <utility>

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

FakeDraftModel::FakeDraftModel(FakeDraftModelOptions options) : options_(std::move(options)) {}

FakeDraftModel::~FakeDraftModel() {
  EXPECT_EQ(open_slots(), 0) << "slots were left open when the drafter went away";
}

void FakeDraftModel::CheckThread() const {
  if (!thread_.has_value()) thread_ = std::this_thread::get_id();
  EXPECT_EQ(*thread_, std::this_thread::get_id()) << "the drafter belongs to one thread";
}

absl::StatusOr<SlotId> FakeDraftModel::OpenSlot() {
  MutexLock lock(&mutex_);
  CheckThread();
  if (static_cast<int32_t>(slots_.size()) >= options_.max_slots) {
    return absl::ResourceExhaustedError("the fake drafter has no slot left");
  }
  // No identity map, and never a number twice: a slot that is used after its end is found out.
  const SlotId slot = 41 + 13 * static_cast<SlotId>(opened_++);
  slots_[slot];
  return slot;
}

void FakeDraftModel::CloseSlot(SlotId slot) {
  MutexLock lock(&mutex_);
  CheckThread();
  EXPECT_EQ(slots_.erase(slot), 1u) << "slot " << slot << " is not open";
}

int64_t FakeDraftModel::SlotLength(SlotId slot) const {
  MutexLock lock(&mutex_);
  CheckThread();
  const auto found = slots_.find(slot);
  EXPECT_NE(found, slots_.end()) << "slot " << slot << " is not open";
  return found == slots_.end() ? 0 : static_cast<int64_t>(found->second.rows.size());
}

void FakeDraftModel::Truncate(SlotId slot, int64_t length) {
  MutexLock lock(&mutex_);
  CheckThread();
  const auto found = slots_.find(slot);
  ASSERT_NE(found, slots_.end()) << "slot " << slot << " is not open";
  Slot& held = found->second;
  ASSERT_GE(length, 0);
  ASSERT_LE(length, static_cast<int64_t>(held.rows.size())) << "slot " << slot;
  held.rows.resize(length);
  if (held.output_row.has_value() && *held.output_row >= length) held.output_row.reset();
}

bool FakeDraftModel::KeepsPromises(absl::Span<const StepSequence> batch, int32_t top_k) const {
  EXPECT_FALSE(batch.empty()) << "a pass over nothing";
  EXPECT_GE(top_k, 1);
  bool fine = !batch.empty() && top_k >= 1;
  std::set<SlotId> seen;
  const auto expect = [&fine](bool condition, const char* promise, SlotId slot) {
    EXPECT_TRUE(condition) << promise << ", slot " << slot;
    fine = fine && condition;
  };
  const int64_t width = int64_t{options_.spec.target_hidden_size} * options_.spec.wiring.size();
  for (const StepSequence& sequence : batch) {
    const SlotId slot = sequence.slot;
    expect(seen.insert(slot).second, "slots of a pass are distinct", slot);
    const auto found = slots_.find(slot);
    expect(found != slots_.end(), "slots of a pass are open", slot);
    if (found == slots_.end()) continue;
    const int64_t length = static_cast<int64_t>(found->second.rows.size());
    expect(sequence.position == length, "position is the slot's length", slot);
    expect(!sequence.tokens.empty(), "at least one row", slot);
    for (const int32_t token : sequence.tokens) {
      expect(token >= 0 && token < options_.spec.vocab_size, "ids are in the vocabulary", slot);
    }
    if (sequence.aux.empty()) {
      expect(sequence.tokens.size() == 1, "one draft row a pass", slot);
      expect(found->second.output_row.has_value() && *found->second.output_row == length - 1,
             "a draft row follows a row that had wants_output", slot);
    } else {
      expect(sequence.aux.rows() == static_cast<int64_t>(sequence.tokens.size()),
             "a token for each row", slot);
      expect(sequence.aux.width() == width, "rows are as wide as the wiring says", slot);
    }
  }
  return fine;
}

StepOutput FakeDraftModel::Append(const StepSequence& sequence, int32_t top_k) {
  Slot& slot = slots_.at(sequence.slot);
  for (size_t i = 0; i < sequence.tokens.size(); ++i) {
    const uint64_t before = slot.rows.empty() ? 1 : slot.rows.back();
    const uint64_t feed = sequence.aux.empty()
                              ? Mix(before, kDraftFeed)
                              : HashBytes(sequence.aux.Slice(static_cast<int64_t>(i), 1).bytes(),
                                          static_cast<uint64_t>(sequence.aux.dtype()));
    uint64_t row = Mix(before, feed);
    row = Mix(row, static_cast<uint64_t>(sequence.position) + i);
    slot.rows.push_back(Mix(row, static_cast<uint64_t>(sequence.tokens[i])));
  }
  slot.output_row.reset();
  StepOutput output;
  if (!sequence.wants_output) return output;
  slot.output_row = static_cast<int64_t>(slot.rows.size()) - 1;
  uint64_t draw = Mix(slot.rows.back(), kOutput);
  std::set<int32_t> taken;
  float log_prob = -0.125f;
  while (static_cast<int32_t>(output.top.size()) < top_k) {
    const auto token = static_cast<int32_t>(draw % static_cast<uint64_t>(options_.spec.vocab_size));
    draw = Mix(draw, kOutput);
    if (!taken.insert(token).second) continue;
    log_prob -= static_cast<float>(draw % 1024 + 1) / 1024.0f;
    output.top.push_back({token, log_prob});
  }
  return output;
}

absl::StatusOr<std::vector<StepOutput>> FakeDraftModel::Step(absl::Span<const StepSequence> batch,
                                                             int32_t top_k) {
  if (options_.before_step) options_.before_step(batch);
  MutexLock lock(&mutex_);
  CheckThread();
  if (!next_failure_.ok()) return std::exchange(next_failure_, absl::OkStatus());
  if (!KeepsPromises(batch, top_k)) {
    return absl::InternalError("the engine broke a promise to the fake drafter");
  }
  std::vector<StepOutput> outputs;
  std::vector<PassPart> parts;
  for (const StepSequence& sequence : batch) {
    outputs.push_back(Append(sequence, top_k));
    parts.push_back({sequence.slot, sequence.position, static_cast<int64_t>(sequence.tokens.size()),
                     sequence.aux.empty(), sequence.wants_output});
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

int64_t FakeDraftModel::total_slots_opened() const {
  MutexLock lock(&mutex_);
  return opened_;
}

std::vector<std::vector<FakeDraftModel::PassPart>> FakeDraftModel::passes() const {
  MutexLock lock(&mutex_);
  return passes_;
}

}  // namespace aerie
