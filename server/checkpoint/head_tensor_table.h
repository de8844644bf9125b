// The rows of the table of tensors: the name, kind and shape of every role.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/checkpoint/head_tensors.h"

namespace aerie {

enum class TensorKind {
  kMatrix,   // F32, F16, BF16, or fp8 with a scale
  kFloats,   // F32, F16 or BF16
  kIndices,  // I32 or I64
  kMask,     // BOOL
};

enum class TensorPlace {
  kHead,     // once
  kLayer,    // once in every layer
  kCapture,  // once for every capture
};

struct TensorRule {
  HeadTensor role;
  absl::string_view part;  // the name behind prefix and layer; behind "fc_norm.N." for kCapture
  TensorKind kind;
  TensorPlace place;
  std::vector<int64_t HeadSizes::*> shape;
  bool twice_in_layer_0 = false;  // the last extent, since two states stand side by side there
};

absl::Span<const TensorRule> TensorRules();
const TensorRule& RuleOf(HeadTensor role);

bool TypeFits(TensorKind kind, TensorType type);
bool IsFp8(TensorType type);
// "F32, F16 or BF16".
absl::string_view ExpectedTypes(TensorKind kind);

}  // namespace aerie
