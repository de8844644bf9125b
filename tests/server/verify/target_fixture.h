// A target and states that a real one might have: early ones resemble the embedding of their own
// token, late ones that of the next, and the last are normed.
#pragma once

#include <vector>

#include "server/verify/capture_set.h"
#include "server/verify/target_tables.h"

namespace aerie {

struct TargetFixture {
  static constexpr int32_t kHidden = 32;
  static constexpr int32_t kVocab = 50;
  static constexpr int32_t kLayers = 12;

  explicit TargetFixture(int32_t sequences = 10);
  TargetFixture(const TargetFixture&) = delete;
  TargetFixture& operator=(const TargetFixture&) = delete;

  // Adds a tensor whose row p is `own` x the embedding of token p + by, `next` x that of token
  // p + 1 + by, and noise of size `noise`.
  void AddStates(const char* name, std::optional<TensorClaim> claim, float own, float next,
                 float noise, int32_t by = 0);
  // Adds what the target's final norm makes of tensor `of`.
  void AddNormed(const char* name, std::optional<TensorClaim> claim, int32_t of);

  TargetTables tables;
  CaptureSet captures;

 private:
  absl::Span<const float> EmbeddingOf(const CaptureSequence& sequence, int64_t position) const;
  std::vector<float> table_;
  std::vector<std::vector<int32_t>> tokens_;
};

}  // namespace aerie
