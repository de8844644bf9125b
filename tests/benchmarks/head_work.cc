#include "tests/benchmarks/head_work.h"

namespace aerie {

HeadWork WorkOf(const Checkpoint& checkpoint) {
  HeadWork work;
  const int32_t last = checkpoint.spec.num_layers.value - 1;
  for (const auto& [key, span] : checkpoint.tensors) {
    if (span.shape.size() != 2 || key.role == HeadTensor::kEmbedding) continue;
    const bool fuses = key.role == HeadTensor::kFc;
    if (!fuses) {
      work.step_elements += span.elements();
      work.step_channels += span.shape[0];
    }
    const bool keys_values = key.role == HeadTensor::kKey || key.role == HeadTensor::kValue;
    const bool of_last_layer = key.index == last && key.role != HeadTensor::kFcNorm;
    if (fuses || keys_values || (!of_last_layer && key.role != HeadTensor::kOutput))
      work.prompt_elements += span.elements();
  }
  return work;
}

}  // namespace aerie
