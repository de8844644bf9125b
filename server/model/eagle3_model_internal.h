// What only tests and tools may do to a loaded drafter. Includes no LibTorch.
#pragma once

#include <cstddef>
#include <functional>

#include "absl/types/span.h"
#include "server/engine/draft_model.h"

namespace aerie {

// Called within Step() for every wanted row, in the order of the batch and of its rows, with its
// logits over the draft vocabulary; they are valid during the call.
using LogitsTap = std::function<void(size_t sequence, absl::Span<const float> logits)>;

// `model` must come from LoadEagle3Model(). An empty tap ends it.
void SetLogitsTap(DraftModel& model, LogitsTap tap);

}  // namespace aerie
