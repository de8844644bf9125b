#include "server/model/weight_bytes.h"

namespace aerie {
namespace {

int64_t BytesOf(HeadTensor role, WeightElement element) {
  switch (element) {
    case WeightElement::kFloat32:
      return 4;
    case WeightElement::kBFloat16:
      return 2;
    case WeightElement::kInt8:
      return role == HeadTensor::kFc ? 2 : 1;
  }
  return 4;
}

}  // namespace

int64_t WeightBytes(const Checkpoint& checkpoint, WeightElement element) {
  int64_t bytes = 0;
  for (const auto& [key, span] : checkpoint.tensors) {
    if (key.role == HeadTensor::kEmbedding) continue;
    const int64_t elements = span.elements();
    if (span.shape.size() < 2) {
      bytes += elements * 4;  // norms and biases are float32 in all types
      continue;
    }
    bytes += elements * BytesOf(key.role, element);
    // A scale for each row.
    if (element == WeightElement::kInt8 && key.role != HeadTensor::kFc) bytes += span.shape[0] * 4;
  }
  return bytes;
}

}  // namespace aerie
