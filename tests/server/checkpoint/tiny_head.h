// A small head with its target, on disk: sound as it stands, and easy to spoil in one place.
//
// Sizes are all different and num_heads x head_dim is not the hidden size, so that mixed-up extents
// cannot pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/common/safetensors/safetensors_writer.h"

namespace aerie {

// A folder of its own under the system's place for temporary files, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(absl::string_view name = "") const;

 private:
  std::string path_;
};

struct TinyHead {
  static constexpr int32_t kLayers = 12;
  static constexpr int32_t kHidden = 12;
  static constexpr int32_t kHeads = 4, kKvHeads = 2, kHeadDim = 6;
  static constexpr int32_t kIntermediate = 20;
  static constexpr int32_t kVocab = 40, kDraftVocab = 10;
  static constexpr int32_t kCaptures = 3;

  TinyHead();  // a sound one, all F32

  std::string config;         // the head's config.json
  std::string target_config;  // the target's
  std::vector<TensorToWrite> tensors;
  std::vector<TensorToWrite> target_tensors;

  // A member of a JSON object at its top; replaces the one of that name. `value` is JSON.
  void Set(absl::string_view key, absl::string_view value);
  void SetTarget(absl::string_view key, absl::string_view value);
  TensorToWrite& Tensor(absl::string_view name);
  void Remove(absl::string_view name);
  void SetD2t(const std::vector<int64_t>& offsets);
  void SetT2d(const std::vector<int32_t>& members);

  // Into <folder>/head and <folder>/target.
  void Write(const TemporaryFolder& folder) const;
};

// The target ids of the tiny head, by draft id.
std::vector<int32_t> TinyTargetIds();

// F32 numbers in -1..1 that depend on `seed` alone.
std::vector<float> Noise(int64_t count, uint32_t seed);

}  // namespace aerie
