#include "server/guard/guard_profile_builder.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "server/guard/channel_rows.h"
#include "server/guard/place_discriminants.h"

namespace aerie {
namespace {

// More channels tell more: with a ninth of them, one layer is no longer seen. The cost is one
// matrix of channels x channels here and one weight a channel and alternative in the file.
constexpr int32_t kMaxChannels = 768;
constexpr int64_t kMaxRows = 8192;
constexpr int64_t kMinRows = 96;
constexpr size_t kMaxAlternatives = 40;

struct RowPlace {
  size_t sequence = 0;
  int64_t row = 0;
};

// Which rows are used, grouped: rows of one group are of one text, and hold each other out.
struct Selection {
  std::vector<RowPlace> rows;
  std::vector<int32_t> groups;  // of each row, ascending from 0
};

Selection Select(absl::Span<const RecordedRows> sequences) {
  Selection selection;
  int64_t total = 0;
  for (const RecordedRows& sequence : sequences) {
    total += std::max<int64_t>(0, sequence.front().rows() - kFirstComparedPosition);
  }
  const int64_t stride = std::max<int64_t>(1, (total + kMaxRows - 1) / kMaxRows);
  for (size_t i = 0; i < sequences.size(); ++i) {
    for (int64_t row = kFirstComparedPosition; row < sequences[i].front().rows(); row += stride) {
      selection.rows.push_back({i, row});
    }
  }
  const size_t count = selection.rows.size();
  size_t texts = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i == 0 || selection.rows[i].sequence != selection.rows[i - 1].sequence) ++texts;
    selection.groups.push_back(static_cast<int32_t>(texts) - 1);
  }
  if (texts < size_t{kFolds}) {
    // Parts of a text hold each other out: the best that there is.
    for (size_t i = 0; i < count; ++i) {
      selection.groups[i] = static_cast<int32_t>(i * kFolds / count);
    }
  }
  return selection;
}

absl::Status CheckShapes(const Wiring& declared, absl::Span<const Capture> recorded,
                         absl::Span<const RecordedRows> sequences) {
  for (const Capture& capture : declared.captures()) {
    if (std::find(recorded.begin(), recorded.end(), capture) == recorded.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the recording holds no ", capture.ToString(), "; expected every capture of the wiring ",
          declared.ToString(), "; record them all, and more beside them"));
    }
  }
  if (declared.size() == 0 || sequences.empty()) {
    return absl::InvalidArgumentError(
        "there is nothing to make a profile of; expected a wiring and at least one sequence");
  }
  const int64_t width = sequences.front().empty() ? 0 : sequences.front().front().width();
  for (const RecordedRows& sequence : sequences) {
    bool fits = sequence.size() == recorded.size() && width > 0;
    for (const HiddenRows& rows : sequence) {
      fits = fits && rows.width() == width && rows.rows() == sequence.front().rows();
    }
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a sequence of the recording does not hold ", recorded.size(), " captures of ", width,
          " values; expected all captures of all positions; record it again"));
    }
  }
  return absl::OkStatus();
}

// Nearest in depth first; what is no boundary, and the wiring's other captures, always.
std::vector<size_t> ChooseAlternatives(const Wiring& declared, size_t place,
                                       absl::Span<const Capture> recorded) {
  const Capture& own = declared.captures()[place];
  std::vector<std::pair<int64_t, size_t>> ranked;
  for (size_t i = 0; i < recorded.size(); ++i) {
    if (recorded[i] == own) continue;
    const auto& others = declared.captures();
    const bool must = recorded[i].kind != Capture::Kind::kBoundary || recorded[i].boundary == 0 ||
                      own.kind != Capture::Kind::kBoundary ||
                      std::find(others.begin(), others.end(), recorded[i]) != others.end();
    ranked.emplace_back(must ? 0 : std::abs(int64_t{recorded[i].boundary} - own.boundary), i);
  }
  std::sort(ranked.begin(), ranked.end());
  if (ranked.size() > kMaxAlternatives) ranked.resize(kMaxAlternatives);
  std::vector<size_t> chosen;
  for (const auto& [rank, index] : ranked) chosen.push_back(index);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

class Values {
 public:
  Values(absl::Span<const RecordedRows> sequences, const Selection& selection,
         const std::vector<int32_t>& channels)
      : sequences_(sequences), selection_(selection), channels_(channels) {}

  // [rows, channels] of one recorded capture.
  std::vector<float> Of(size_t capture) const {
    const size_t count = channels_.size();
    std::vector<float> values(selection_.rows.size() * count);
    for (size_t i = 0; i < selection_.rows.size(); ++i) {
      const RowPlace& place = selection_.rows[i];
      ReadChannels(sequences_[place.sequence][capture], place.row, 0, channels_,
                   absl::MakeSpan(values).subspan(i * count, count));
    }
    return values;
  }

 private:
  absl::Span<const RecordedRows> sequences_;
  const Selection& selection_;
  const std::vector<int32_t>& channels_;
};

}  // namespace

absl::StatusOr<GuardProfile> BuildGuardProfile(const Wiring& declared,
                                               absl::Span<const Capture> recorded,
                                               absl::Span<const RecordedRows> sequences) {
  if (absl::Status status = CheckShapes(declared, recorded, sequences); !status.ok()) return status;
  GuardProfile profile;
  profile.hidden_size = static_cast<int32_t>(sequences.front().front().width());
  profile.sequences = static_cast<int32_t>(sequences.size());
  const int64_t count = std::min(profile.hidden_size, kMaxChannels);
  for (int64_t i = 0; i < count; ++i) {
    profile.channels.push_back(static_cast<int32_t>(i * profile.hidden_size / count));
  }
  const Selection selection = Select(sequences);
  profile.rows = static_cast<int64_t>(selection.rows.size());
  if (profile.rows < kMinRows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the recording has ", profile.rows, " rows past position ", kFirstComparedPosition,
        "; expected at least ", kMinRows, " for a profile, better thousands; record more text"));
  }
  const Values values(sequences, selection, profile.channels);
  for (size_t i = 0; i < declared.captures().size(); ++i) {
    const Capture& own = declared.captures()[i];
    const auto index =
        static_cast<size_t>(std::find(recorded.begin(), recorded.end(), own) - recorded.begin());
    PlaceDiscriminants made(own, values.Of(index), selection.groups);
    for (const size_t alternative : ChooseAlternatives(declared, i, recorded)) {
      made.Add(recorded[alternative], values.Of(alternative));
    }
    absl::StatusOr<GuardPlace> place = made.Make();
    if (!place.ok()) return place.status();
    double square = 0.0;
    for (const RowPlace& at : selection.rows) {
      square += MeanSquare(sequences[at.sequence][index], at.row, 0, profile.hidden_size);
    }
    place->rms = std::sqrt(square / static_cast<double>(profile.rows));
    profile.places.push_back(*std::move(place));
  }
  if (absl::Status status = profile.Validate(); !status.ok()) return status;
  return profile;
}

}  // namespace aerie
