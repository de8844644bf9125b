// A recording: hidden states of a target with the tokens that they belong to, read from a folder of
// safetensors files and a recording.json.
//
// Row p of a tensor is the state of position p of its sample, so row p and token p belong to one
// position: the token that *follows* the state is token p + 1. What a tensor is said to hold
// (label, claim) is not checked here; measuring it is what recordings are for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/hidden_rows.h"
#include "common/safetensors/safetensors.h"
#include "server/recording/recording_description.h"

namespace aerie {

struct RecordedSample {
  std::string name;
  std::vector<int32_t> tokens;           // L >= 1, all within the target's vocabulary
  std::optional<int64_t> prompt_tokens;  // how many of them nobody generated; absent: not said
};

// Owns the mapped files; what rows() returns is valid as long as the recording, also when that is
// moved. Immutable: threads may share it. The files must not be changed meanwhile.
class Recording {
 public:
  const std::string& folder() const { return folder_; }
  const RecordedTarget& target() const { return target_; }
  DType dtype() const { return dtype_; }
  const std::string& source() const { return source_; }

  absl::Span<const RecordedTensor> tensors() const { return tensors_; }
  absl::Span<const RecordedSample> samples() const { return samples_; }
  // Over all samples.
  int64_t total_tokens() const;
  // Where the tensor of this name stands in tensors().
  std::optional<size_t> FindTensor(absl::string_view name) const;

  // [tokens of the sample, hidden_size], all finite; nothing is copied. Indices into samples() and
  // tensors().
  HiddenRows rows(size_t sample, size_t tensor) const;

  // 16 hex digits over the tokens of all samples: tells whether two recordings are of one text.
  std::string TokensDigest() const;

 private:
  friend class RecordingLoader;
  Recording() = default;

  std::string folder_;
  RecordedTarget target_;
  DType dtype_ = DType::kF32;
  std::string source_;
  std::vector<RecordedTensor> tensors_;
  std::vector<RecordedSample> samples_;
  std::vector<SafetensorsFile> files_;
  std::vector<HiddenRows> rows_;  // [samples, tensors], views into files_
};

// NOT_FOUND when `folder` has no recording.json. FAILED_PRECONDITION with everything that is wrong:
// files that are missing or damaged, names that leave the folder or stand twice, shapes and element
// types that differ from the description, tokens outside the vocabulary, rows that hold NaN or
// infinity (named). Reads all bytes once.
absl::StatusOr<Recording> LoadRecording(const std::string& folder);

}  // namespace aerie
