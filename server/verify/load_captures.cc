#include "server/verify/load_captures.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace aerie {

CaptureSet CapturesOf(const Recording& recording) {
  CaptureSet captures;
  captures.hidden_size = recording.target().hidden_size;
  for (const RecordedTensor& tensor : recording.tensors()) {
    captures.tensors.push_back(
        {tensor.name, tensor.label, tensor.claim, CaptureTensor::Origin::kRecorded, -1});
  }
  for (size_t sample = 0; sample < recording.samples().size(); ++sample) {
    const RecordedSample& recorded = recording.samples()[sample];
    CaptureSequence sequence;
    sequence.name = recorded.name;
    sequence.tokens = recorded.tokens;
    sequence.prompt_tokens = recorded.prompt_tokens;
    for (size_t tensor = 0; tensor < recording.tensors().size(); ++tensor) {
      sequence.tensors.push_back(recording.rows(sample, tensor));
    }
    captures.sequences.push_back(std::move(sequence));
  }
  return captures;
}

absl::Status CheckFitsHead(const Recording& recording, const Checkpoint& checkpoint) {
  const auto differs = [](const char* what, int64_t recorded, int64_t expected) {
    return absl::FailedPreconditionError(
        absl::StrCat("the recording's target has ", what, " ", recorded, "; expected ", expected,
                     ", the head's; record the target that the head was trained for"));
  };
  const RecordedTarget& target = recording.target();
  const int32_t width = checkpoint.spec.target_hidden_size.value;
  if (target.hidden_size != width) return differs("hidden size", target.hidden_size, width);
  if (target.num_layers != 0 && checkpoint.target.num_layers != 0 &&
      target.num_layers != checkpoint.target.num_layers) {
    return differs("a number of layers of", target.num_layers, checkpoint.target.num_layers);
  }
  const int32_t vocabulary = checkpoint.spec.vocab_size.value;
  for (const RecordedSample& sample : recording.samples()) {
    const auto largest = std::max_element(sample.tokens.begin(), sample.tokens.end());
    if (*largest >= vocabulary) {
      return absl::FailedPreconditionError(absl::StrCat(
          "sample ", sample.name, " has the token ", *largest, "; expected ids below ", vocabulary,
          ", the head's vocabulary; record the target that the head was trained for"));
    }
  }
  return absl::OkStatus();
}

}  // namespace aerie
