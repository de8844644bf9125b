// Which tensor of one recording is which of another, by content: names, labels and claims play no
// part in the answer.
//
// Where both recordings share beginnings of texts (the same text, or the same chat template), rows
// are compared one by one, and the answer is certain in both directions. Where they share none,
// only fingerprints are left: they find the most alike, but a place that the other recording lacks
// has neighbours there, so the best that can be said is "likely".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/recording/recording.h"
#include "server/recording/tensor_facts.h"

namespace aerie {

enum class MatchMethod {
  kRows,          // rows behind equal texts were compared
  kFingerprints,  // fingerprints were
};

enum class MatchVerdict {
  kSame,       // rows are equal to rounding, and to one tensor only
  kLikely,     // fingerprints: by far the most alike, in every part of the recording
  kDifferent,  // no tensor of the other recording is this one
  kUnsure,
};
// "same", "likely", "different", "unsure".
absl::string_view MatchVerdictName(MatchVerdict verdict);

// What was found of one tensor of recording A.
struct TensorMatch {
  MatchVerdict verdict = MatchVerdict::kUnsure;
  size_t best = 0;                  // of B: the least distance
  std::optional<size_t> runner_up;  // of B; absent when B has one tensor
  double distance = 0;              // to the best
  double runner_up_distance = 0;
  // 1 - distance / runner_up_distance, 0..1: how clearly the best is the best. 0 without a
  // runner-up.
  double margin = 0;
  // Only with kRows: row p in A is row p + shift of the best in B. Not 0 makes it kDifferent: such
  // a recording pairs states with the wrong tokens.
  int32_t shift = 0;
  std::string reason;  // a sentence

  // The claims of the two recordings cannot both be right: one tensor is claimed to be two places,
  // or two tensors to be one.
  bool claims_differ = false;
};

struct MatchResult {
  MatchMethod method = MatchMethod::kRows;
  int64_t compared_rows = 0;
  std::vector<TensorMatch> matches;            // by tensor of A
  std::vector<std::vector<double>> distances;  // [tensors of A, tensors of B]
  std::vector<TensorFacts> a_facts, b_facts;   // by tensor
};

// FAILED_PRECONDITION when the recordings are of targets of different hidden size.
absl::StatusOr<MatchResult> MatchRecordings(const Recording& a, const Recording& b);

}  // namespace aerie
