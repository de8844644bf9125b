#include "server/recording/match.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/recording/common_rows.h"
#include "server/recording/match_distances.h"

namespace aerie {
namespace {

constexpr size_t kMostPairs = 128;
constexpr size_t kFewestPairs = 4;

// On rows. Two engines in bfloat16 come to 0.03 on a target of 30 layers, neighbouring boundaries
// to 0.3 and more; a deeper target has closer neighbours, hence the room between the two.
constexpr double kSameRows = 0.06;
constexpr double kDifferentRows = 0.15;
constexpr double kClearRows = 0.65;  // least margin

// On fingerprints. The same place in other texts comes to 0.04 .. 0.12.
constexpr double kDifferentFingerprints = 0.25;
constexpr double kClearFingerprints = 0.05;  // least margin

// Best and runner-up among `distances`.
TensorMatch Rank(const std::vector<double>& distances) {
  TensorMatch match;
  for (size_t j = 1; j < distances.size(); ++j) {
    if (distances[j] < distances[match.best]) match.best = j;
  }
  for (size_t j = 0; j < distances.size(); ++j) {
    if (j == match.best) continue;
    if (!match.runner_up.has_value() || distances[j] < distances[*match.runner_up]) {
      match.runner_up = j;
    }
  }
  match.distance = distances[match.best];
  if (match.runner_up.has_value()) {
    match.runner_up_distance = distances[*match.runner_up];
    if (match.runner_up_distance > 0) match.margin = 1 - match.distance / match.runner_up_distance;
  }
  return match;
}

void JudgeRows(const Recording& b, TensorMatch& match) {
  const std::string& best = b.tensors()[match.best].name;
  if (match.distance >= kDifferentRows) {
    match.verdict = MatchVerdict::kDifferent;
    match.reason = absl::StrFormat("no tensor has equal rows; the nearest, %s, is %.3f away", best,
                                   match.distance);
  } else if (match.runner_up.has_value() && match.runner_up_distance <= kSameRows &&
             match.margin < kClearRows) {
    match.reason = absl::StrCat("rows are equal to those of ", best, " and of ",
                                b.tensors()[*match.runner_up].name, " alike");
  } else if (match.distance > kSameRows ||
             (match.runner_up.has_value() && match.margin < kClearRows)) {
    match.reason =
        absl::StrFormat("rows are near those of %s (%.3f) but not equal, or others are near too",
                        best, match.distance);
  } else {
    match.verdict = MatchVerdict::kSame;
    match.reason = absl::StrFormat("rows are equal to %.4f", match.distance);
  }
}

// For a tensor without equal rows: whether it has them one position on.
void LookForShift(const Recording& a, const Recording& b, const std::vector<RowPair>& pairs,
                  std::vector<TensorMatch>& matches) {
  const auto lost = [](const TensorMatch& m) { return m.verdict == MatchVerdict::kDifferent; };
  if (std::none_of(matches.begin(), matches.end(), lost)) return;
  for (const int32_t shift : {-1, 1}) {
    const auto distances = RowDistances(a, b, pairs, shift);
    for (size_t i = 0; i < matches.size(); ++i) {
      TensorMatch shifted = Rank(distances[i]);
      if (!lost(matches[i]) || shifted.distance > kSameRows) continue;
      if (shifted.runner_up.has_value() && shifted.margin < kClearRows) continue;
      shifted.verdict = MatchVerdict::kDifferent;
      shifted.shift = shift;
      shifted.reason = absl::StrFormat(
          "row p is row p%+d of %s: the states stand beside the wrong tokens in one of the two",
          shift, b.tensors()[shifted.best].name);
      matches[i] = std::move(shifted);
    }
  }
}

void MatchByRows(const Recording& a, const Recording& b, const std::vector<RowPair>& pairs,
                 MatchResult& result) {
  result.method = MatchMethod::kRows;
  result.compared_rows = static_cast<int64_t>(pairs.size());
  result.distances = RowDistances(a, b, pairs, 0);
  for (const std::vector<double>& distances : result.distances) {
    result.matches.push_back(Rank(distances));
    JudgeRows(b, result.matches.back());
  }
  LookForShift(a, b, pairs, result.matches);
}

void JudgeFingerprints(const Recording& b, size_t parts_won, TensorMatch& match) {
  const std::string& best = b.tensors()[match.best].name;
  const bool everywhere = parts_won == FingerprintDistances::kParts;
  if (match.distance >= kDifferentFingerprints) {
    match.verdict = MatchVerdict::kDifferent;
    match.reason = absl::StrFormat("no fingerprint is like it; the nearest, %s, is %.3f away", best,
                                   match.distance);
  } else if (match.runner_up.has_value() && everywhere && match.margin >= kClearFingerprints) {
    match.verdict = MatchVerdict::kLikely;
    match.reason = "its fingerprint is the most alike in every part of the recording";
  } else {
    match.reason = absl::StrFormat(
        "its fingerprint is the most alike by %.1f %%, in %d of %d parts of the recording",
        100 * match.margin, parts_won, FingerprintDistances::kParts);
  }
}

// Two tensors cannot both be the most alike one: the one that is farther is unsure.
void SettleRivals(std::vector<TensorMatch>& matches) {
  for (TensorMatch& match : matches) {
    for (const TensorMatch& other : matches) {
      if (&match == &other || match.verdict != MatchVerdict::kLikely ||
          other.verdict != MatchVerdict::kLikely || other.best != match.best ||
          other.distance > match.distance) {
        continue;
      }
      match.verdict = MatchVerdict::kUnsure;
      match.reason = "another tensor is more like the same one";
    }
  }
}

void MatchByFingerprints(const Recording& a, const Recording& b, MatchResult& result) {
  result.method = MatchMethod::kFingerprints;
  const FingerprintDistances compared = CompareFingerprints(a, b);
  result.compared_rows = compared.rows;
  if (compared.rows == 0) {
    TensorMatch nothing;
    nothing.reason = "the recordings are too short to compare fingerprints";
    result.matches.assign(a.tensors().size(), nothing);
    result.distances.assign(a.tensors().size(), std::vector<double>(b.tensors().size()));
    return;
  }
  result.distances = compared.all;
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    TensorMatch match = Rank(compared.all[i]);
    size_t won = 0;
    for (const auto& part : compared.parts) won += Rank(part[i]).best == match.best ? 1 : 0;
    JudgeFingerprints(b, won, match);
    result.matches.push_back(std::move(match));
  }
  SettleRivals(result.matches);
}

bool ClaimsDiffer(const RecordedTensor& tensor, const Recording& b, const TensorMatch& match) {
  if (!tensor.claim.has_value()) return false;
  const auto claims_the_same = [&](const RecordedTensor& other) {
    return other.claim.has_value() && SamePlace(*tensor.claim, *other.claim);
  };
  switch (match.verdict) {
    case MatchVerdict::kSame:
    case MatchVerdict::kLikely:
      return b.tensors()[match.best].claim.has_value() && !claims_the_same(b.tensors()[match.best]);
    case MatchVerdict::kDifferent:
      return match.shift == 0 &&
             std::any_of(b.tensors().begin(), b.tensors().end(), claims_the_same);
    case MatchVerdict::kUnsure:
      break;
  }
  return false;
}

}  // namespace

absl::string_view MatchVerdictName(MatchVerdict verdict) {
  switch (verdict) {
    case MatchVerdict::kSame:
      return "same";
    case MatchVerdict::kLikely:
      return "likely";
    case MatchVerdict::kDifferent:
      return "different";
    case MatchVerdict::kUnsure:
      break;
  }
  return "unsure";
}

absl::StatusOr<MatchResult> MatchRecordings(const Recording& a, const Recording& b) {
  if (a.target().hidden_size != b.target().hidden_size) {
    return absl::FailedPreconditionError(absl::StrCat(
        a.folder(), " has rows of ", a.target().hidden_size, " numbers and ", b.folder(), " of ",
        b.target().hidden_size, "; expected recordings of one target; choose such"));
  }
  MatchResult result;
  const std::vector<RowPair> pairs = CommonRows(a, b, kMostPairs);
  if (pairs.size() >= kFewestPairs) {
    MatchByRows(a, b, pairs, result);
  } else {
    MatchByFingerprints(a, b, result);
  }
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    TensorMatch& match = result.matches[i];
    match.claims_differ = ClaimsDiffer(a.tensors()[i], b, match);
    result.a_facts.push_back(FindFacts(a, i));
  }
  for (size_t j = 0; j < b.tensors().size(); ++j) result.b_facts.push_back(FindFacts(b, j));
  return result;
}

}  // namespace aerie
