// recording.json: what a recording says of itself, checked but not believed.
//
// A tensor's label and claim are what somebody *says* it holds. Nothing here or in the reader acts
// on them: labels that lied are why recordings are measured at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/dtype.h"
#include "server/checkpoint/complaints.h"

namespace aerie {

inline constexpr char kRecordingFile[] = "recording.json";
inline constexpr char kRecordingFormat[] = "aerie-recording/1";

// The target as the recorder knew it. An importer of somebody's dump may know its width alone.
struct RecordedTarget {
  std::string id;
  int32_t num_layers = 0;   // 0: not said
  int32_t hidden_size = 0;  // > 0
  int32_t vocab_size = 0;   // 0: not said
};

// What a tensor is said to hold.
struct TensorClaim {
  enum class Kind { kBoundary, kFinalNorm, kEmbedding };
  Kind kind = Kind::kBoundary;
  int32_t boundary = 0;  // only with kBoundary
  // "boundary 15", "final norm", "embedding".
  std::string ToString() const;

  friend bool operator==(const TensorClaim&, const TensorClaim&) = default;
};
// Boundary 0 is the embedding output.
bool SamePlace(const TensorClaim& a, const TensorClaim& b);

struct RecordedTensor {
  std::string name;   // unique; part of the keys in the files
  std::string label;  // free text for people; may be empty
  std::optional<TensorClaim> claim;
};

struct DescribedSample {
  std::string name;  // unique; part of the keys in the files
  int64_t tokens = 0;
  std::optional<int64_t> prompt_tokens;  // 0..tokens; absent: not said
  std::string file;                      // a plain name within the recording's folder
};

struct RecordingDescription {
  RecordedTarget target;
  DType dtype = DType::kF32;  // of all rows
  std::string source;         // free text: where the states came from
  std::vector<RecordedTensor> tensors;
  std::vector<DescribedSample> samples;
};

// From the text of recording.json. nullopt with complaints when anything is wrong with it.
std::optional<RecordingDescription> ReadRecordingDescription(absl::string_view text,
                                                             Complaints& complaints);

}  // namespace aerie
