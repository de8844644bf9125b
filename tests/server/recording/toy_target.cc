#include "tests/server/recording/toy_target.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/check.h"
#include "common/float16.h"

namespace aerie {
namespace {

constexpr size_t kHugeChannel = 7;

// The layer's own tendency and what it makes of this prefix.
void AddLayer(int32_t layer, uint32_t prefix, std::vector<float>& state) {
  const std::vector<float> own = Noise(ToyTarget::kHidden, 1000u + static_cast<uint32_t>(layer));
  const std::vector<float> made =
      Noise(ToyTarget::kHidden, prefix * 31u + static_cast<uint32_t>(layer) + 5000u);
  for (size_t c = 0; c < state.size(); ++c) state[c] += 0.3f * own[c] + 0.5f * made[c];
  if (layer == 1) state[kHugeChannel] += 900.0f;
}

}  // namespace

TensorClaim At(int32_t boundary) { return {TensorClaim::Kind::kBoundary, boundary}; }
TensorClaim FinalNorm() { return {TensorClaim::Kind::kFinalNorm, 0}; }
TensorClaim Embedding() { return {TensorClaim::Kind::kEmbedding, 0}; }

std::vector<float> ToyTarget::State(const std::vector<int32_t>& prefix, const TensorClaim& place) {
  std::vector<float> state = Noise(kHidden, static_cast<uint32_t>(prefix.back()) + 1u);
  uint32_t digest = 17;
  for (const int32_t token : prefix) digest = digest * 1000003u + static_cast<uint32_t>(token);
  const int32_t layers = place.kind == TensorClaim::Kind::kBoundary    ? place.boundary
                         : place.kind == TensorClaim::Kind::kFinalNorm ? kLayers
                                                                       : 0;
  for (int32_t layer = 0; layer < layers; ++layer) AddLayer(layer, digest, state);
  if (place.kind == TensorClaim::Kind::kFinalNorm) {
    state[kHugeChannel] -= 900.0f;  // the last layers of real targets take it back, too
    float sum = 0;
    for (const float value : state) sum += value * value;
    for (float& value : state) value /= std::sqrt(sum / kHidden);
  }
  return state;
}

void ToyRecording::Write(const TemporaryFolder& folder) const {
  const std::string dtype = bfloat16 ? "bfloat16" : "float32";
  std::vector<std::string> described_tensors, described_samples;
  for (const ToyTensor& tensor : tensors) {
    described_tensors.push_back(absl::StrCat("{\"name\": \"", tensor.name, "\", \"label\": \"",
                                             tensor.label, "\", \"claim\": ", tensor.claim, "}"));
  }
  std::vector<TensorToWrite> written;
  for (size_t s = 0; s < texts.size(); ++s) {
    const std::vector<int32_t>& text = texts[s];
    const auto length = static_cast<int64_t>(text.size());
    described_samples.push_back(absl::StrCat("{\"name\": \"", s, "\", \"tokens\": ", length,
                                             ", \"file\": \"all.safetensors\"}"));
    written.push_back({absl::StrCat(s, ".tokens"), "I32", {length}, BytesOf(text)});
    for (const ToyTensor& tensor : tensors) {
      std::vector<float> values;
      for (int64_t p = 0; p < length; ++p) {
        const int64_t position = std::clamp<int64_t>(p + row_shift, 0, length - 1);
        const auto state =
            ToyTarget::State({text.begin(), text.begin() + position + 1}, tensor.place);
        const auto error = Noise(ToyTarget::kHidden, static_cast<uint32_t>(p * 7 + 3));
        for (size_t c = 0; c < state.size(); ++c) {
          values.push_back(state[c] * (1 + noise * error[c]));
        }
      }
      std::vector<uint16_t> words;
      for (const float value : values) words.push_back(FloatToBf16(value));
      written.push_back({absl::StrCat(s, ".", tensor.name),
                         bfloat16 ? "BF16" : "F32",
                         {length, ToyTarget::kHidden},
                         bfloat16 ? BytesOf(words) : BytesOf(values)});
    }
  }
  const std::string description = absl::StrCat(
      "{\"format\": \"aerie-recording/1\", \"target\": {\"id\": \"toy\", \"num_layers\": ",
      ToyTarget::kLayers, ", \"hidden_size\": ", ToyTarget::kHidden,
      ", \"vocab_size\": ", ToyTarget::kVocab, "}, \"dtype\": \"", dtype,
      "\", \"source\": \"a toy\", \"tensors\": [", absl::StrJoin(described_tensors, ", "),
      "], \"samples\": [", absl::StrJoin(described_samples, ", "), "]}");
  AERIE_CHECK(WriteFile(folder.path("recording.json"), description));
  AERIE_CHECK(WriteFile(folder.path("all.safetensors"), Safetensors(written)));
}

std::vector<std::vector<int32_t>> ToyTexts(size_t count, size_t length, uint32_t seed,
                                           const std::vector<int32_t>& beginning) {
  std::vector<std::vector<int32_t>> texts;
  for (size_t i = 0; i < count; ++i) {
    texts.push_back(beginning);
    const auto noise = Noise(static_cast<int64_t>(length), seed + 100u * static_cast<uint32_t>(i));
    for (const float value : noise) {
      const auto token = static_cast<int32_t>((value + 1) / 2 * ToyTarget::kVocab);
      texts.back().push_back(std::clamp(token, 0, ToyTarget::kVocab - 1));
    }
  }
  return texts;
}

}  // namespace aerie
