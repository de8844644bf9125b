// Recordings on disk for tests: sound as they stand, and easy to spoil in one place.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/common/safetensors/safetensors_writer.h"
#include "tests/server/checkpoint/tiny_head.h"

namespace aerie {

// Two samples of different lengths in two files, two tensors, F32. Row values differ by sample,
// tensor, row and column, so that a swap of any two cannot pass.
struct WrittenRecording {
  static constexpr int32_t kHidden = 5, kVocab = 40, kLayers = 6;

  WrittenRecording();

  // Replaces the first `from` of the description; it must be there.
  void Edit(const std::string& from, const std::string& to);
  TensorToWrite& Tensor(const std::string& key);
  void Write(const TemporaryFolder& folder) const;

  std::string description;  // recording.json
  std::vector<std::pair<std::string, std::vector<TensorToWrite>>> files;
};

// What the sound recording holds at one place.
float ValueAt(size_t sample, size_t tensor, int64_t row, int64_t column);

}  // namespace aerie
