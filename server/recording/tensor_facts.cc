#include "server/recording/tensor_facts.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "server/recording/common_rows.h"
#include "server/recording/fingerprint.h"

namespace aerie {
namespace {

constexpr size_t kMostPairs = 128;
constexpr int64_t kFewestPairs = 4;
constexpr size_t kMostRows = 1024;
// Far above rounding, far below what even a single layer adds.
constexpr double kEqualRows = 0.02;

struct Place {
  size_t sample;
  int64_t position;
};

// Rows of one token behind different tokens; each row in at most one pair.
std::vector<std::pair<Place, Place>> TokenPairs(const Recording& recording) {
  std::unordered_map<int32_t, Place> waiting;
  std::vector<std::pair<Place, Place>> pairs;
  for (size_t s = 0; s < recording.samples().size(); ++s) {
    const std::vector<int32_t>& tokens = recording.samples()[s].tokens;
    for (size_t p = 1; p < tokens.size(); ++p) {
      const Place here{s, static_cast<int64_t>(p)};
      const auto [found, fresh] = waiting.try_emplace(tokens[p], here);
      if (fresh) continue;
      const Place there = found->second;
      const int32_t before =
          recording.samples()[there.sample].tokens[static_cast<size_t>(there.position) - 1];
      if (before == tokens[p - 1]) continue;
      pairs.emplace_back(there, here);
      waiting.erase(found);
    }
  }
  if (pairs.size() <= kMostPairs) return pairs;
  std::vector<std::pair<Place, Place>> spread;
  for (size_t i = 0; i < kMostPairs; ++i) spread.push_back(pairs[i * pairs.size() / kMostPairs]);
  return spread;
}

float MedianRowRms(const Recording& recording, size_t tensor) {
  const auto width = static_cast<size_t>(recording.target().hidden_size);
  const int64_t step = std::max<int64_t>(1, recording.total_tokens() / int64_t{kMostRows});
  std::vector<float> row(width), rms;
  for (size_t s = 0; s < recording.samples().size(); ++s) {
    const HiddenRows rows = recording.rows(s, tensor);
    for (int64_t p = std::min(kFirstTypicalPosition, rows.rows() - 1); p < rows.rows(); p += step) {
      rows.Slice(p, 1).CopyToFloat(absl::MakeSpan(row));
      double sum = 0;
      for (const float value : row) sum += double{value} * value;
      rms.push_back(static_cast<float>(std::sqrt(sum / static_cast<double>(width))));
    }
  }
  const auto middle = rms.begin() + static_cast<ptrdiff_t>(rms.size() / 2);
  std::nth_element(rms.begin(), middle, rms.end());
  return *middle;
}

}  // namespace

std::optional<bool> TensorFacts::depends_on_token_alone() const {
  if (!same_token_distance.has_value() || token_pairs < kFewestPairs) return std::nullopt;
  return *same_token_distance <= kEqualRows;
}

std::optional<std::string> FactAgainstClaim(const RecordedTensor& tensor,
                                            const TensorFacts& facts) {
  const std::optional<bool> token_alone = facts.depends_on_token_alone();
  if (!tensor.claim.has_value() || !token_alone.has_value()) return std::nullopt;
  const bool claims_embedding = SamePlace(*tensor.claim, {TensorClaim::Kind::kEmbedding, 0});
  if (claims_embedding == *token_alone) return std::nullopt;
  if (claims_embedding) {
    return absl::StrFormat(
        "it is no embedding: rows of one token in different surroundings are %.2f apart (over %d "
        "pairs), and those of an embedding are equal",
        *facts.same_token_distance, facts.token_pairs);
  }
  return absl::StrFormat(
      "it is an embedding: rows of one token are equal in whatever surroundings (over %d pairs)",
      facts.token_pairs);
}

TensorFacts FindFacts(const Recording& recording, size_t tensor) {
  TensorFacts facts;
  facts.median_row_rms = MedianRowRms(recording, tensor);
  const auto width = static_cast<size_t>(recording.target().hidden_size);
  std::vector<float> left(width), right(width);
  std::vector<double> distances;
  for (const auto& [a, b] : TokenPairs(recording)) {
    recording.rows(a.sample, tensor).Slice(a.position, 1).CopyToFloat(absl::MakeSpan(left));
    recording.rows(b.sample, tensor).Slice(b.position, 1).CopyToFloat(absl::MakeSpan(right));
    distances.push_back(RowDistance(absl::MakeSpan(left), absl::MakeSpan(right)));
  }
  facts.token_pairs = static_cast<int64_t>(distances.size());
  if (!distances.empty()) {
    const auto middle = distances.begin() + static_cast<ptrdiff_t>(distances.size() / 2);
    std::nth_element(distances.begin(), middle, distances.end());
    facts.same_token_distance = *middle;
  }
  return facts;
}

}  // namespace aerie
