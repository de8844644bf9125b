// The safetensors files of one model folder: a single `model.safetensors`, or shards named by an
// index.
//
// The index is a file from outside too: it may name files that are not there, files elsewhere, or
// the wrong shard. All of it is checked before a tensor is handed out.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/safetensors/safetensors.h"

namespace aerie {

// Immutable: threads may share it.
class WeightsFolder {
 public:
  // NOT_FOUND when the folder holds no weights that can be read here; the message says what was
  // found instead and how to convert it. INVALID_ARGUMENT for a damaged file or an index that does
  // not match its shards.
  static absl::StatusOr<WeightsFolder> Open(const std::string& folder);

  // Of all files.
  absl::Span<const TensorSpan> tensors() const { return tensors_; }
  // By name; one unless the folder is sharded.
  absl::Span<const SafetensorsFile> files() const { return files_; }

  // 16 hex digits over all bytes of all files: the same weights, the same digest.
  std::string Digest() const;

 private:
  explicit WeightsFolder(std::vector<SafetensorsFile> files);

  std::vector<SafetensorsFile> files_;
  std::vector<TensorSpan> tensors_;
};

}  // namespace aerie
