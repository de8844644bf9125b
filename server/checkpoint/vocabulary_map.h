// From draft ids to target ids.
//
// `d2t` holds offsets, target id = draft id + d2t[draft id]. Read as absolute ids, or dropped, it
// yields tokens that look fine and are never accepted; so every property that it must have is
// checked.
#pragma once

#include <cstdint>
#include <vector>

#include "common/safetensors/safetensors.h"
#include "server/checkpoint/complaints.h"

namespace aerie {

// The target id of each of `draft_vocab` draft ids, strictly increasing. `d2t` ([draft_vocab], I32
// or I64) and `t2d`
// ([vocab], BOOL) may be null; without d2t the ids are the same, which needs equal vocabularies.
// Empty when it complained. Both tensors have their shapes.
std::vector<int32_t> ReadVocabularyMap(const TensorSpan* d2t, const TensorSpan* t2d,
                                       int64_t draft_vocab, int64_t vocab, Complaints& complaints);

// True entries of a BOOL tensor.
int64_t CountTrue(const TensorSpan& mask);

}  // namespace aerie
