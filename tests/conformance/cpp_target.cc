#include "tests/conformance/cpp_target.h"

#include "common/check.h"

namespace aerie {
namespace {

uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t Digest(const std::vector<int32_t>& history) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  for (const int32_t token : history) hash = Mix(hash + static_cast<uint64_t>(token) + 1);
  return hash;
}

// -1 .. 1, by the seed alone.
float Uniform(uint64_t seed) {
  return static_cast<float>(Mix(seed) >> 40) / static_cast<float>(1 << 23) - 1.0f;
}

}  // namespace

Manifest HashTarget::TargetManifest() {
  Manifest manifest;
  manifest.target_id = "a target of hashes";
  manifest.num_layers = kLayers;
  manifest.hidden_size = kHiddenSize;
  manifest.vocab_size = kVocabulary;
  absl::StatusOr<Wiring> wiring =
      Wiring::Create({Capture::Boundary(1), Capture::Boundary(4)}, kLayers);
  AERIE_CHECK(wiring.ok()) << wiring.status();
  manifest.wiring = *std::move(wiring);
  manifest.dtype = DType::kF32;
  return manifest;
}

std::vector<int32_t> HashTarget::Prompt() {
  return {3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 32, 3, 8, 46, 26};
}

int32_t HashTarget::Choice(const std::vector<int32_t>& history) {
  return static_cast<int32_t>(Digest(history) % kVocabulary);
}

void HashTarget::AppendRow(const std::vector<int32_t>& history, std::string* bytes) {
  const uint64_t digest = Digest(history);
  const auto token = static_cast<uint64_t>(history.back());
  for (uint64_t capture = 0; capture < 2; ++capture) {
    // The later a place, the less of its own token it shows.
    const float own = capture == 0 ? 1.0f : 0.3f;
    for (uint64_t column = 0; column < kHiddenSize; ++column) {
      const float value =
          own * Uniform(token * 131 + column) + 0.3f * Uniform(digest + capture * 1000 + column);
      bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
}

}  // namespace aerie
