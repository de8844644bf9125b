// The recorded tensors that candidates choose from, with those that the target's files add.
//
// Row p of a tensor is said to be the state of position p; a candidate's shift is the doubt about
// that.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/hidden_rows.h"
#include "server/recording/recording_description.h"

namespace aerie {

// One tensor of the recording, or one made from the target's files.
struct CaptureTensor {
  std::string name;
  std::string label;
  std::optional<TensorClaim> claim;
  enum class Origin { kRecorded, kTargetEmbedding, kTargetNorm };
  Origin origin = Origin::kRecorded;
  int32_t norm_of = -1;  // of kTargetNorm: the tensor that it was applied to
};

struct CaptureSequence {
  std::string name;
  absl::Span<const int32_t> tokens;
  std::optional<int64_t> prompt_tokens;
  std::vector<HiddenRows> tensors;  // [tokens, hidden size], in the order of CaptureSet::tensors

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
};

struct CaptureSet {
  int32_t hidden_size = 0;
  std::vector<CaptureTensor> tensors;
  std::vector<CaptureSequence> sequences;
  // The values of tensors that were made; `tensors` of the sequences are views of them.
  std::deque<std::vector<float>> made;

  // "boundary 2", or "unlabelled".
  std::string ClaimOf(int32_t tensor) const;
  // The tensor that claims this and is recorded, if exactly one does.
  std::optional<int32_t> FindClaim(const TensorClaim& claim) const;
};

// Row `position` of `tensor`, of `set.hidden_size` elements, as float32. The position is moved to
// the nearest one that there is.
void CopyState(const CaptureSequence& sequence, int32_t tensor, int64_t position,
               absl::Span<float> out);

// A view of rows whose values `values` holds, [values.size() / width, width].
HiddenRows ViewFloats(const std::vector<float>& values, int64_t width);

}  // namespace aerie
