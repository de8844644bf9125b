#include "server/checkpoint/vocabulary_map.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"

namespace aerie {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are little-endian");

// Element `index` of an I32 or I64 tensor, whose bytes need not be aligned.
int64_t IntegerAt(const TensorSpan& tensor, size_t index) {
  if (tensor.type == TensorType::kI32) {
    int32_t value;
    std::memcpy(&value, tensor.bytes.data() + index * sizeof(value), sizeof(value));
    return value;
  }
  int64_t value;
  std::memcpy(&value, tensor.bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

// Whether the entries are themselves a list of distinct target ids, as some converters write it.
bool LooksAbsolute(const TensorSpan& d2t, int64_t draft_vocab, int64_t vocab) {
  int64_t last = -1;
  for (int64_t i = 0; i < draft_vocab; ++i) {
    const int64_t value = IntegerAt(d2t, i);
    if (value <= last || value >= vocab) return false;
    last = value;
  }
  return true;
}

// What is wrong with the map; empty when nothing is.
std::string FirstFault(const TensorSpan& d2t, const TensorSpan* t2d, int64_t draft_vocab,
                       int64_t vocab, std::vector<int32_t>& map) {
  int64_t last = -1;
  for (int64_t i = 0; i < draft_vocab; ++i) {
    int64_t target = 0;
    if (__builtin_add_overflow(i, IntegerAt(d2t, i), &target) || target < 0 || target >= vocab) {
      return absl::StrCat("d2t[", i, "] = ", IntegerAt(d2t, i), " leads outside the target's 0..",
                          vocab - 1);
    }
    if (target <= last) {
      return absl::StrCat("draft ids ", i - 1, " and ", i, " map to target ids ", last, " and ",
                          target);
    }
    if (t2d != nullptr && t2d->bytes[target] == 0) {
      return absl::StrCat("draft id ", i, " maps to target id ", target, ", which t2d leaves out");
    }
    map.push_back(static_cast<int32_t>(target));
    last = target;
  }
  return "";
}

// What is implausible about a map that is possible; empty when nothing is. For maps without a t2d
// to compare them with.
std::string Suspicion(const TensorSpan& d2t, int64_t draft_vocab, int64_t vocab) {
  constexpr int64_t kEnoughToTell = 64;
  if (draft_vocab < kEnoughToTell || draft_vocab == vocab) return "";
  bool all_zero = true;
  bool all_growing = true;
  for (int64_t i = 0; i < draft_vocab; ++i) {
    all_zero = all_zero && IntegerAt(d2t, i) == 0;
    all_growing = all_growing && (i == 0 || IntegerAt(d2t, i) > IntegerAt(d2t, i - 1));
  }
  if (all_zero) {
    return absl::StrCat("d2t is all zeros, which takes the first ", draft_vocab, " of ", vocab,
                        " target ids: the mark of a map that was never built");
  }
  // Offsets stay the same between neighbours of the target's vocabulary, and common tokens are
  // neighbours.
  if (all_growing)
    return "each entry of d2t is above the one before, so that no two kept tokens are neighbours";
  return "";
}

}  // namespace

int64_t CountTrue(const TensorSpan& mask) {
  return std::count_if(mask.bytes.begin(), mask.bytes.end(), [](char c) { return c != 0; });
}

std::vector<int32_t> ReadVocabularyMap(const TensorSpan* d2t, const TensorSpan* t2d,
                                       int64_t draft_vocab, int64_t vocab, Complaints& complaints) {
  if (d2t == nullptr) {
    if (draft_vocab != vocab) {
      complaints.Add(absl::StrCat(
          "the head scores ", draft_vocab, " tokens of the target's ", vocab,
          " and has no d2t; expected the map from its ids to the target's; export the head "
          "with d2t, or its drafts would be arbitrary tokens"));
      return {};
    }
    std::vector<int32_t> same(draft_vocab);
    std::iota(same.begin(), same.end(), 0);
    return same;
  }
  std::vector<int32_t> map;
  map.reserve(draft_vocab);
  std::string fault = FirstFault(*d2t, t2d, draft_vocab, vocab, map);
  if (fault.empty() && t2d == nullptr) fault = Suspicion(*d2t, draft_vocab, vocab);
  if (fault.empty()) return map;
  complaints.Add(
      absl::StrCat(fault,
                   "; expected offsets, target id = draft id + d2t[draft id], that give increasing "
                   "ids of the target; ",
                   LooksAbsolute(*d2t, draft_vocab, vocab)
                       ? "this d2t looks like a list of absolute target ids: subtract 0, 1, 2, ... "
                         "from it and save the head again"
                       : "export the head again"));
  return {};
}

}  // namespace aerie
