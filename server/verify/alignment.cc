#include "server/verify/alignment.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/verify/statistics.h"
#include "server/verify/student_t.h"

namespace aerie {
namespace {

constexpr int64_t kFirstRow = 4;  // rows in front of it are huge and say nothing of their token
constexpr double kBeyondDoubt = 1e-3;
// More would not be surer, only slower.
constexpr size_t kMaxSequences = 48;
constexpr int64_t kMaxPositions = 512;
constexpr size_t kOffsets = std::size(kAlignmentOffsets);

// Channels as numbers without unit: a few huge ones would drown the rest.
class Standardiser {
 public:
  explicit Standardiser(size_t width) : mean_(width), scale_(width) {}

  void Add(absl::Span<const float> row) {
    for (size_t i = 0; i < row.size(); ++i) {
      mean_[i] += row[i];
      scale_[i] += double{row[i]} * row[i];
    }
    ++rows_;
  }
  void Finish() {
    for (size_t i = 0; i < mean_.size(); ++i) {
      mean_[i] /= static_cast<double>(rows_);
      const double variance = scale_[i] / static_cast<double>(rows_) - mean_[i] * mean_[i];
      scale_[i] = variance > 0.0 ? 1.0 / std::sqrt(variance) : 0.0;
    }
  }
  // In place, and to length 1.
  void Apply(absl::Span<float> row) const {
    double squares = 0.0;
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<float>((row[i] - mean_[i]) * scale_[i]);
      squares += double{row[i]} * row[i];
    }
    if (squares == 0.0) return;
    const float length = static_cast<float>(1.0 / std::sqrt(squares));
    for (float& value : row) value *= length;
  }

 private:
  std::vector<double> mean_, scale_;
  int64_t rows_ = 0;
};

// [positions, width] of one sequence, standardised.
using Rows = std::vector<std::vector<float>>;

std::vector<Rows> StandardRows(
    const CaptureSet& captures,
    const std::function<void(const CaptureSequence&, int64_t, absl::Span<float>)>& copy) {
  std::vector<Rows> all;
  Standardiser standardiser(captures.hidden_size);
  for (const CaptureSequence& sequence : captures.sequences) {
    if (all.size() == kMaxSequences) break;
    Rows& rows = all.emplace_back();
    for (int64_t position = 0; position < std::min(sequence.length(), kMaxPositions); ++position) {
      std::vector<float>& row = rows.emplace_back(captures.hidden_size);
      copy(sequence, position, absl::MakeSpan(row));
      if (position >= kFirstRow) standardiser.Add(row);
    }
  }
  standardiser.Finish();
  for (Rows& rows : all) {
    for (std::vector<float>& row : rows) standardiser.Apply(absl::MakeSpan(row));
  }
  return all;
}

double Product(absl::Span<const float> a, absl::Span<const float> b) {
  float sum = 0.0f;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Mean cosine of each sequence at each offset: [sequences][offsets].
std::vector<std::vector<double>> Similarities(const std::vector<Rows>& states,
                                              const std::vector<Rows>& embeddings) {
  std::vector<std::vector<double>> all;
  for (size_t s = 0; s < states.size(); ++s) {
    const auto length = static_cast<int64_t>(states[s].size());
    const int64_t first = kFirstRow - kAlignmentOffsets[0];
    const int64_t end = length - kAlignmentOffsets[kOffsets - 1];
    if (end <= first) continue;
    std::vector<double>& means = all.emplace_back(kOffsets);
    for (size_t o = 0; o < kOffsets; ++o) {
      for (int64_t p = first; p < end; ++p) {
        means[o] += Product(states[s][p], embeddings[s][p + kAlignmentOffsets[o]]);
      }
      means[o] /= static_cast<double>(end - first);
    }
  }
  return all;
}

// Two-sided p of the difference of two offsets, sequence by sequence.
double PairedP(const std::vector<std::vector<double>>& similarities, size_t a, size_t b) {
  const auto count = static_cast<double>(similarities.size());
  double sum = 0.0;
  double squares = 0.0;
  for (const std::vector<double>& one : similarities) {
    const double difference = one[a] - one[b];
    sum += difference;
    squares += difference * difference;
  }
  const double mean = sum / count;
  const double variance = std::max(0.0, squares / count - mean * mean) * count / (count - 1.0);
  return TwoSidedP(mean / std::sqrt(variance / count), count - 1.0);
}

TensorAlignment FindPeak(const std::vector<std::vector<double>>& similarities) {
  TensorAlignment found;
  found.similarity.assign(kOffsets, 0.0);
  for (const std::vector<double>& one : similarities) {
    for (size_t o = 0; o < kOffsets; ++o) {
      found.similarity[o] += one[o] / static_cast<double>(similarities.size());
    }
  }
  const size_t peak =
      std::max_element(found.similarity.begin(), found.similarity.end()) - found.similarity.begin();
  for (size_t o = 0; o < kOffsets; ++o) {
    if (o != peak && !(PairedP(similarities, peak, o) < kBeyondDoubt)) return found;
  }
  found.peak = kAlignmentOffsets[peak];
  return found;
}

// Of two tables, the one of which the tensor has more.
bool SaysMore(const TensorAlignment& a, const TensorAlignment& b) {
  if (a.peak.has_value() != b.peak.has_value()) return a.peak.has_value();
  return *std::max_element(a.similarity.begin(), a.similarity.end()) >
         *std::max_element(b.similarity.begin(), b.similarity.end());
}

// From where tensors peak to the shift of all.
void Conclude(Alignment& alignment) {
  std::set<int32_t> peaks;
  for (const TensorAlignment& tensor : alignment.tensors) {
    if (tensor.peak.has_value()) peaks.insert(*tensor.peak);
  }
  if (peaks.size() != 2 || *peaks.rbegin() != *peaks.begin() + 1) {
    alignment.reason =
        peaks.size() > 2
            ? "the tensors are not alike in which tokens they resemble: some may be shifted"
            : "no early and late states were found whose tokens would tell";
    return;
  }
  const int32_t own = *peaks.begin();
  alignment.shift = -own;
  alignment.reason =
      own == 0
          ? "early states resemble the token that they stand beside, late ones the next"
          : absl::StrCat("early states resemble the token ", std::abs(own), " position",
                         own == 1 || own == -1 ? "" : "s", own > 0 ? " behind" : " in front of",
                         " the one that they stand beside, late ones the token after that");
}

}  // namespace

Alignment AlignByValue(const CaptureSet& captures, const TargetTables& tables) {
  Alignment alignment;
  if (!tables.embedding.has_value()) {
    alignment.reason = "there is no embedding to compare states with";
    return alignment;
  }
  // Late states resemble rows of the output matrix, which need not be the embedding.
  std::vector<std::vector<Rows>> tables_of_tokens;
  for (const std::optional<HiddenRows>* const table : {&tables.embedding, &tables.output}) {
    if (!table->has_value()) continue;
    tables_of_tokens.push_back(StandardRows(
        captures, [&](const CaptureSequence& sequence, int64_t position, absl::Span<float> out) {
          (*table)->Slice(sequence.tokens[position], 1).CopyToFloat(out);
        }));
  }
  for (int32_t i = 0; i < static_cast<int32_t>(captures.tensors.size()); ++i) {
    if (captures.tensors[i].origin != CaptureTensor::Origin::kRecorded) continue;
    const std::vector<Rows> states = StandardRows(
        captures, [i](const CaptureSequence& sequence, int64_t position, absl::Span<float> out) {
          CopyState(sequence, i, position, out);
        });
    TensorAlignment& tensor = alignment.tensors.emplace_back();
    for (const std::vector<Rows>& of_tokens : tables_of_tokens) {
      const auto similarities = Similarities(states, of_tokens);
      if (static_cast<int32_t>(similarities.size()) < kMinSequences) {
        alignment.tensors.clear();
        alignment.reason = "there are too few sequences to compare states with tokens";
        return alignment;
      }
      TensorAlignment found = FindPeak(similarities);
      if (tensor.similarity.empty() || SaysMore(found, tensor)) tensor = std::move(found);
    }
    tensor.tensor = captures.tensors[i].name;
  }
  Conclude(alignment);
  return alignment;
}

std::vector<int32_t> ShiftsToTry(const Alignment& alignment) {
  std::vector<int32_t> shifts;
  for (const int32_t shift : {0, -1, 1}) {
    if (!alignment.shift.has_value() || shift <= *alignment.shift) shifts.push_back(shift);
  }
  if (shifts.empty()) shifts.push_back(*alignment.shift);
  return shifts;
}

}  // namespace aerie
