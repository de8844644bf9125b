// How producers spell the names of a head's tensors.
//
// One layer is `midlayer.` or `layers.0.`, several are `layers.N.` or `midlayer.N.`, and each may
// have `model.` in front. A file that mixes spellings is two half heads and refused; so is a name
// twice.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace aerie {

// A stored name taken apart.
struct TensorName {
  std::string part;              // behind prefix and layer: "mlp.up_proj.weight", "fc.weight"
  std::optional<int64_t> layer;  // 0 for `midlayer.`
  std::string family;            // "midlayer.", "model.layers.N."; outside layers "" or "model."
};

TensorName ParseTensorName(absl::string_view stored);

// Names that hold nothing which the drafter could use and are skipped, always: the rotary
// frequencies that config.json gives as well.
bool IsRedundantTensor(absl::string_view stored);

// What a name that no role has belongs to, when that is known: "a head that drafts in parallel".
std::optional<absl::string_view> MeaningOfName(absl::string_view stored);

}  // namespace aerie
