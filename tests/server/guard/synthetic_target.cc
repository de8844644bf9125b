#include "tests/server/guard/synthetic_target.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/check.h"
#include "server/guard/guard_profile_builder.h"

namespace aerie {
namespace {

constexpr int64_t kTokensOfAText = 120;
constexpr uint32_t kRecordedTexts = 12;

// About normal, a function of its arguments alone.
float Noise(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  float sum = 0.0f;
  uint64_t state = (uint64_t{a} << 40) ^ (uint64_t{b} << 27) ^ (uint64_t{c} << 13) ^ d;
  for (int i = 0; i < 4; ++i) {
    // SplitMix64.
    state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    sum += static_cast<float>((mixed ^ (mixed >> 31)) >> 40) / static_cast<float>(1 << 24) - 0.5f;
  }
  return sum * 1.73f;
}

enum Source : uint32_t { kToken = 1, kEmbedding, kLayer, kText, kRow };

std::vector<float> StateAt(uint32_t text, int32_t token, uint32_t position, int32_t boundary) {
  std::vector<float> state;
  for (uint32_t c = 0; c < uint32_t{SyntheticTarget::kHidden}; ++c) {
    float value = Noise(kEmbedding, static_cast<uint32_t>(token), c, 0);
    for (int32_t layer = 0; layer < boundary; ++layer) {
      const auto l = static_cast<uint32_t>(layer);
      value += 0.9f * Noise(kLayer, l, c, 0) + 0.2f * Noise(kText, text, c, l) +
               0.25f * Noise(kRow, text * 1000 + position, c, l);
    }
    if (c == 7 && boundary > 0) value += 60.0f;
    state.push_back(value);
  }
  return state;
}

}  // namespace

std::vector<int32_t> SyntheticTarget::Tokens(uint32_t text, int64_t count) {
  std::vector<int32_t> tokens;
  for (uint32_t i = 0; i < static_cast<uint32_t>(count); ++i) {
    const float draw = std::abs(Noise(kToken, text, i, 0));
    tokens.push_back(std::min(static_cast<int32_t>(draw * 12.0f), kVocab - 1));
  }
  return tokens;
}

std::string SyntheticTarget::States(uint32_t text, const std::vector<int32_t>& tokens,
                                    const Capture& capture) {
  std::string bytes;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool normed = capture.kind == Capture::Kind::kFinalNorm;
    std::vector<float> state =
        StateAt(text, tokens[i], static_cast<uint32_t>(i), normed ? kLayers : capture.boundary);
    if (normed) {
      float square = 0.0f;
      for (const float value : state) square += value * value;
      for (float& value : state) value /= std::sqrt(square / kHidden);
    }
    bytes.append(reinterpret_cast<const char*>(state.data()), state.size() * sizeof(float));
  }
  return bytes;
}

std::vector<Capture> SyntheticTarget::AllCaptures() {
  std::vector<Capture> captures;
  for (int32_t b = 0; b <= kLayers; ++b) captures.push_back(Capture::Boundary(b));
  captures.push_back(Capture::FinalNorm());
  return captures;
}

Wiring SyntheticTarget::Declared() {
  return *Wiring::Create({Capture::Boundary(2), Capture::Boundary(6), Capture::Boundary(10)},
                         kLayers);
}

GuardProfile SyntheticTarget::Profile(const std::vector<Capture>& recorded) {
  std::vector<std::string> bytes;  // behind the rows
  std::vector<RecordedRows> sequences;
  bytes.reserve(kRecordedTexts * recorded.size());
  for (uint32_t text = 0; text < kRecordedTexts; ++text) {
    const std::vector<int32_t> tokens = Tokens(text, kTokensOfAText);
    RecordedRows rows;
    for (const Capture& capture : recorded) {
      bytes.push_back(States(text, tokens, capture));
      absl::StatusOr<HiddenRows> view =
          HiddenRows::Create(DType::kF32, kTokensOfAText, kHidden, bytes.back());
      AERIE_CHECK(view.ok()) << view.status().message();
      rows.push_back(*view);
    }
    sequences.push_back(std::move(rows));
  }
  absl::StatusOr<GuardProfile> profile = BuildGuardProfile(Declared(), recorded, sequences);
  AERIE_CHECK(profile.ok()) << profile.status().message();
  return *std::move(profile);
}

}  // namespace aerie
