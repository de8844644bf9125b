// A target that is arithmetic: its state at a position depends on all tokens up to there, each
// layer adds a little, and one huge channel drowns the size of the rows from boundary 2 on, as in
// real targets. So neighbouring boundaries have nearly the same RMS and are different all the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/recording/recording.h"
#include "tests/server/recording/recording_writer.h"

namespace aerie {

struct ToyTarget {
  static constexpr int32_t kLayers = 6, kHidden = 96, kVocab = 50;

  // The state of the last of `prefix` at a place; the embedding is boundary 0.
  static std::vector<float> State(const std::vector<int32_t>& prefix, const TensorClaim& place);
};

TensorClaim At(int32_t boundary);
TensorClaim FinalNorm();
TensorClaim Embedding();

struct ToyTensor {
  std::string name;
  TensorClaim place;           // what it holds
  std::string claim = "null";  // what it says, as JSON
  std::string label;
};

struct ToyRecording {
  std::vector<std::vector<int32_t>> texts;
  std::vector<ToyTensor> tensors;
  float noise = 0;  // added to every value, relative to it
  bool bfloat16 = false;
  int32_t row_shift = 0;  // row p holds the state of position p + row_shift, within the text

  void Write(const TemporaryFolder& folder) const;
};

// `count` texts of `length` tokens that depend on `seed` alone, each behind `beginning`.
std::vector<std::vector<int32_t>> ToyTexts(size_t count, size_t length, uint32_t seed,
                                           const std::vector<int32_t>& beginning = {});

}  // namespace aerie
