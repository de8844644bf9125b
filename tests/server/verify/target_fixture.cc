#include "tests/server/verify/target_fixture.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/server/checkpoint/tiny_head.h"

namespace aerie {

TargetFixture::TargetFixture(int32_t sequences) : table_(Noise(kVocab * kHidden, 1)) {
  tables.spec = {kLayers, kHidden, kVocab, true};
  tables.embedding = ViewFloats(table_, kHidden);
  tables.norm_weight = Noise(kHidden, 2);
  for (float& weight : tables.norm_weight) weight += 2.0f;
  tables.norm_epsilon = 1e-5;
  captures.hidden_size = kHidden;
  for (int32_t s = 0; s < sequences; ++s) {
    const std::vector<float> noise = Noise(40 + s, 100 + s);
    std::vector<int32_t>& tokens = tokens_.emplace_back();
    for (const float value : noise)
      tokens.push_back(static_cast<int32_t>((value + 1) * 0.49f * kVocab));
  }
  for (const std::vector<int32_t>& tokens : tokens_) {
    captures.sequences.push_back({"", tokens, std::nullopt, {}});
  }
}

absl::Span<const float> TargetFixture::EmbeddingOf(const CaptureSequence& sequence,
                                                   int64_t position) const {
  const int64_t inside = std::clamp<int64_t>(position, 0, sequence.length() - 1);
  return absl::MakeSpan(table_).subspan(sequence.tokens[inside] * kHidden, kHidden);
}

void TargetFixture::AddStates(const char* name, std::optional<TensorClaim> claim, float own,
                              float next, float noise, int32_t by) {
  captures.tensors.push_back({name, "", claim, CaptureTensor::Origin::kRecorded, -1});
  uint32_t seed = 1000 * static_cast<uint32_t>(captures.tensors.size());
  for (CaptureSequence& sequence : captures.sequences) {
    std::vector<float>& values =
        captures.made.emplace_back(Noise(sequence.length() * kHidden, ++seed));
    for (int64_t p = 0; p < sequence.length(); ++p) {
      const auto of_own = EmbeddingOf(sequence, p + by);
      const auto of_next = EmbeddingOf(sequence, p + 1 + by);
      for (int32_t i = 0; i < kHidden; ++i) {
        float& value = values[p * kHidden + i];
        value = own * of_own[i] + next * of_next[i] + noise * value;
      }
    }
    sequence.tensors.push_back(ViewFloats(values, kHidden));
  }
}

void TargetFixture::AddNormed(const char* name, std::optional<TensorClaim> claim, int32_t of) {
  captures.tensors.push_back({name, "", claim, CaptureTensor::Origin::kRecorded, -1});
  for (CaptureSequence& sequence : captures.sequences) {
    std::vector<float>& values = captures.made.emplace_back(sequence.length() * kHidden);
    for (int64_t p = 0; p < sequence.length(); ++p) {
      const absl::Span<float> row = absl::MakeSpan(values).subspan(p * kHidden, kHidden);
      CopyState(sequence, of, p, row);
      double squares = 0.0;
      for (const float value : row) squares += double{value} * value;
      const double scale = 1.0 / std::sqrt(squares / kHidden + tables.norm_epsilon);
      for (int32_t i = 0; i < kHidden; ++i) {
        row[i] = static_cast<float>(row[i] * scale * tables.norm_weight[i]);
      }
    }
    sequence.tensors.push_back(ViewFloats(values, kHidden));
  }
}

}  // namespace aerie
