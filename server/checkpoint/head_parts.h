// The parts of ResolveHead(): what is read together and compared together.
//
// Each fills its fields of the spec and complains; none relies on another having found everything.
#pragma once

#include <optional>
#include <string>

#include "server/checkpoint/config_view.h"
#include "server/checkpoint/head_config.h"
#include "server/checkpoint/head_layout.h"
#include "server/checkpoint/head_spec.h"
#include "server/checkpoint/head_tensors.h"
#include "server/checkpoint/target_config.h"

namespace aerie {

struct HeadFiles {
  const ConfigView& config;
  const HeadTensors& tensors;
  const TargetSpec& target;
  const HeadConfigOptions& options;
  const HeadLayout& layout;

  // The key of the layer's settings, wherever the layout has them.
  std::string Layer(absl::string_view key) const;
  Complaints& complaints() const { return config.complaints(); }
};

// Extent `dimension` of a tensor. nullopt when there is no such tensor; with a complaint when the
// extent is not in 1..2^31-1.
std::optional<Sourced<int32_t>> ExtentOf(const HeadFiles& files, const TensorKey& key,
                                         size_t dimension);

// A part that the file has or has not. `keys` may say so as well; the tensor decides, and a key
// that says otherwise is a complaint.
Sourced<bool> PartFromTensor(const HeadFiles& files, const TensorKey& tensor,
                             std::initializer_list<std::string> keys);

void ReadSizes(const HeadFiles& files, HeadSpec& spec);
void ReadAttention(const HeadFiles& files, HeadSpec& spec);
void ReadNorms(const HeadFiles& files, HeadSpec& spec);
// After the sizes.
void ReadVocabularies(const HeadFiles& files, HeadSpec& spec);

}  // namespace aerie
