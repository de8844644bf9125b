#include "tests/server/verify/fake_head.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "common/check.h"

namespace aerie {
namespace {

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

double HashNoise(uint64_t key) {
  return static_cast<double>(Mix(key, 17) >> 11) / static_cast<double>(uint64_t{1} << 52) - 1.0;
}

FakeRecording::FakeRecording(int32_t tensors, int32_t sequences, int64_t rows) {
  captures.hidden_size = FakeHead::kHidden;
  for (int32_t t = 0; t < tensors; ++t) {
    captures.tensors.push_back({"t" + std::to_string(t), "",
                                TensorClaim{TensorClaim::Kind::kBoundary, t},
                                CaptureTensor::Origin::kRecorded, -1});
  }
  for (int32_t s = 0; s < sequences; ++s) {
    std::vector<int32_t>& tokens = tokens_.emplace_back();
    for (int64_t p = 0; p < rows + s % 7; ++p) {
      tokens.push_back(static_cast<int32_t>(Mix(s, p) % FakeHead::kVocab));
    }
  }
  Fill(0);
}

void FakeRecording::ShiftRows(int32_t by) { Fill(by); }

void FakeRecording::Fill(int32_t shift) {
  captures.sequences.clear();
  captures.made.clear();
  for (size_t s = 0; s < tokens_.size(); ++s) {
    CaptureSequence sequence;
    sequence.name = std::to_string(s);
    sequence.tokens = tokens_[s];
    sequence.prompt_tokens = 5 + s % 3;
    for (size_t t = 0; t < captures.tensors.size(); ++t) {
      std::vector<float>& values = captures.made.emplace_back();
      for (int64_t p = 0; p < sequence.length(); ++p) {
        values.push_back(static_cast<float>(t));
        values.push_back(static_cast<float>(p - shift));
        values.push_back(static_cast<float>(s + 1));
      }
      sequence.tensors.push_back(ViewFloats(values, FakeHead::kHidden));
    }
    captures.sequences.push_back(std::move(sequence));
  }
}

FakeHead::FakeHead(FakeTruth truth, int32_t num_pages) : truth_(std::move(truth)) {
  spec_.target_hidden_size = kHidden;
  spec_.vocab_size = kVocab;
  store_ = {kPageRows, num_pages, 64};
  rows_.resize(size_t{kPageRows} * num_pages);
}

int32_t& FakeHead::TextAt(const StepSequence& part, int64_t row) {
  const size_t page = static_cast<size_t>(row / kPageRows);
  AERIE_CHECK(page < part.pages.size()) << "row " << row << " lies in no page";
  return rows_[size_t{kPageRows} * part.pages[page] + row % kPageRows];
}

RowOutput FakeHead::Score(double loss, uint64_t noise_key, int32_t probe) const {
  RowOutput out;
  out.finite = truth_.finite;
  if (!out.finite) return out;
  const double log_likelihood =
      -2.5 + truth_.bonus - loss + truth_.noise * HashNoise(Mix(noise_key, 1));
  // Right more often the better the row, and never about a token that it has not.
  const bool hit = probe >= 0 && probe < kFirstOutside &&
                   HashNoise(Mix(noise_key, 2)) * 0.5 + 0.5 < 0.5 * std::exp(-loss);
  out.top.push_back({hit ? probe : kVocab - 1, static_cast<float>(log_likelihood)});
  if (probe >= 0) {
    out.probe_log_prob = probe < kFirstOutside ? static_cast<float>(log_likelihood)
                                               : -std::numeric_limits<float>::infinity();
  }
  return out;
}

std::vector<RowOutput> FakeHead::Extend(const StepSequence& part) {
  Slot& slot = slots_[part.slot];
  slot = Slot();
  std::vector<RowOutput> outputs;
  const auto count = static_cast<int64_t>(part.tokens.size());
  AERIE_CHECK(part.aux.rows() == count);
  std::vector<float> states(count * part.aux.width());
  part.aux.CopyToFloat(absl::MakeSpan(states));
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = part.length + r;
    const float* const state = &states[r * part.aux.width()];
    double loss = 0.0;
    uint64_t wiring = 0;
    for (size_t place = 0; place < truth_.tensors.size(); ++place) {
      const float* const capture = state + place * kHidden;
      const auto tensor = static_cast<int32_t>(capture[0]);
      const double distance = std::min(3, std::abs(tensor - truth_.tensors[place]));
      loss += truth_.costs[place] * distance / 3.0;
      if (static_cast<int64_t>(capture[1]) != row) loss += truth_.shift_cost / 3.0;
      wiring = Mix(wiring, static_cast<uint64_t>(capture[0] * 64 + capture[1] -
                                                 static_cast<float>(row) + 8));
    }
    slot.text = static_cast<int32_t>(state[2]);
    // A wiring suits some texts better than others.
    loss += loss > 0.0 ? 0.5 * loss * HashNoise(Mix(wiring, slot.text)) : 0.0;
    slot.loss = loss;
    for (int64_t before = part.visible.start; before < row; ++before) {
      AERIE_CHECK(TextAt(part, before) == slot.text) << "row " << before << " is of another text";
    }
    TextAt(part, row) = slot.text;
    const bool wanted =
        part.outputs == Outputs::kEvery || (part.outputs == Outputs::kLast && r == count - 1);
    if (!wanted) continue;
    const int32_t probe = part.probes.empty() ? -1 : part.probes[outputs.size()];
    outputs.push_back(Score(loss, Mix(Mix(wiring, slot.text), row), probe));
  }
  slot.length = part.length + count;
  return outputs;
}

std::vector<RowOutput> FakeHead::Draft(const StepSequence& part) {
  const auto found = slots_.find(part.slot);
  AERIE_CHECK(found != slots_.end()) << "draft rows without an extend row";
  Slot& slot = found->second;
  AERIE_CHECK(part.length == slot.length && part.tokens.size() == 1);
  AERIE_CHECK(part.parents[0] == slot.draft_rows - 1) << "a chain goes on from its last row";
  ++slot.draft_rows;
  TextAt(part, part.length + slot.draft_rows - 1) = 0;
  const int32_t depth = slot.draft_rows + 1;
  return {Score(slot.loss + truth_.loss_by_depth * (depth - 1),
                Mix(Mix(slot.text, part.length), depth + 100), part.probes[0])};
}

absl::StatusOr<std::vector<StepOutput>> FakeHead::Step(absl::Span<const StepSequence> batch,
                                                       int32_t top_k) {
  AERIE_CHECK(top_k == 1 && !batch.empty());
  ++passes_;
  int64_t rows = 0;
  std::vector<StepOutput> outputs;
  for (const StepSequence& part : batch) {
    rows += static_cast<int64_t>(part.tokens.size());
    outputs.push_back({part.IsExtend() ? Extend(part) : Draft(part)});
  }
  largest_pass_ = std::max(largest_pass_, rows);
  return outputs;
}

VerifyInput InputOf(const FakeRecording& recording, std::vector<int32_t> declared) {
  VerifyInput input;
  input.captures.hidden_size = recording.captures.hidden_size;
  input.captures.tensors = recording.captures.tensors;
  input.captures.sequences = recording.captures.sequences;
  input.num_layers = 40;
  input.num_captures = static_cast<int32_t>(declared.size());
  std::vector<Capture> captures;
  for (const int32_t boundary : declared) captures.push_back(Capture::Boundary(boundary));
  Reading reading;
  reading.convention = "output-of-layer";
  reading.wiring = *Wiring::Create(captures, 40);
  FindCandidate(input.captures, reading);
  input.readings.push_back(std::move(reading));
  return input;
}

ModelLoader LoaderOf(const FakeTruth& truth) {
  return [truth](const CheckpointOptions&) -> absl::StatusOr<std::unique_ptr<DraftModel>> {
    return std::make_unique<FakeHead>(truth);
  };
}

}  // namespace aerie
