#include "server/recording/match_distances.h"

#include <algorithm>

#include "server/recording/fingerprint.h"

namespace aerie {
namespace {

constexpr int32_t kMostChannels = 512;
constexpr int64_t kMostRows = 1024;

struct Place {
  size_t sample;
  int64_t position;
};

// Typical rows, spread over the recording. Whole samples in order.
std::vector<Place> SpreadRows(const Recording& recording) {
  int64_t total = 0;
  for (const RecordedSample& sample : recording.samples()) {
    total +=
        std::max<int64_t>(0, static_cast<int64_t>(sample.tokens.size()) - kFirstTypicalPosition);
  }
  const int64_t step = std::max<int64_t>(1, (total + kMostRows - 1) / kMostRows);
  std::vector<Place> places;
  int64_t count = 0;
  for (size_t s = 0; s < recording.samples().size(); ++s) {
    const auto length = static_cast<int64_t>(recording.samples()[s].tokens.size());
    for (int64_t p = kFirstTypicalPosition; p < length; ++p) {
      if (count++ % step == 0) places.push_back({s, p});
    }
  }
  return places;
}

std::vector<float> ReadRows(const Recording& recording, size_t tensor,
                            const std::vector<Place>& places) {
  const auto width = static_cast<size_t>(recording.target().hidden_size);
  std::vector<float> values(places.size() * width);
  for (size_t i = 0; i < places.size(); ++i) {
    recording.rows(places[i].sample, tensor)
        .Slice(places[i].position, 1)
        .CopyToFloat(absl::MakeSpan(values).subspan(i * width, width));
  }
  return values;
}

std::vector<float> Pick(const std::vector<float>& row, const std::vector<int32_t>& channels) {
  std::vector<float> picked;
  picked.reserve(channels.size());
  for (const int32_t channel : channels) picked.push_back(row[static_cast<size_t>(channel)]);
  return picked;
}

}  // namespace

std::vector<std::vector<double>> RowDistances(const Recording& a, const Recording& b,
                                              const std::vector<RowPair>& pairs, int32_t shift) {
  const auto width = static_cast<size_t>(a.target().hidden_size);
  const std::vector<int32_t> channels = SpreadChannels(a.target().hidden_size, kMostChannels);
  const size_t a_count = a.tensors().size(), b_count = b.tensors().size();
  std::vector<std::vector<std::vector<double>>> all(a_count,
                                                    std::vector<std::vector<double>>(b_count));
  std::vector<float> row(width);
  for (const RowPair& pair : pairs) {
    const int64_t other = pair.position + shift;
    if (other < 0 || other >= b.rows(pair.b_sample, 0).rows()) continue;
    std::vector<std::vector<float>> b_rows;
    for (size_t j = 0; j < b_count; ++j) {
      b.rows(pair.b_sample, j).Slice(other, 1).CopyToFloat(absl::MakeSpan(row));
      b_rows.push_back(Pick(row, channels));
    }
    for (size_t i = 0; i < a_count; ++i) {
      a.rows(pair.a_sample, i).Slice(pair.position, 1).CopyToFloat(absl::MakeSpan(row));
      const std::vector<float> a_row = Pick(row, channels);
      for (size_t j = 0; j < b_count; ++j) {
        std::vector<float> left = a_row, right = b_rows[j];
        all[i][j].push_back(RowDistance(absl::MakeSpan(left), absl::MakeSpan(right)));
      }
    }
  }
  std::vector<std::vector<double>> medians(a_count, std::vector<double>(b_count, 2.0));
  for (size_t i = 0; i < a_count; ++i) {
    for (size_t j = 0; j < b_count; ++j) {
      std::vector<double>& values = all[i][j];
      if (values.empty()) continue;
      const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
      std::nth_element(values.begin(), middle, values.end());
      medians[i][j] = *middle;
    }
  }
  return medians;
}

FingerprintDistances CompareFingerprints(const Recording& a, const Recording& b) {
  FingerprintDistances result;
  const std::vector<Place> a_places = SpreadRows(a), b_places = SpreadRows(b);
  if (a_places.size() < FingerprintDistances::kParts || b_places.empty()) return result;
  result.rows = static_cast<int64_t>(a_places.size());
  const bool by_sample = a.samples().size() >= FingerprintDistances::kParts;
  const auto part_of = [&](size_t i) {
    return by_sample ? a_places[i].sample % FingerprintDistances::kParts
                     : i * FingerprintDistances::kParts / a_places.size();
  };
  const int32_t width = a.target().hidden_size;
  std::vector<Fingerprint> prints;
  for (size_t j = 0; j < b.tensors().size(); ++j) {
    prints.push_back(
        MakeFingerprint(ReadRows(b, j, b_places), width, SpreadChannels(width, kMostChannels)));
  }
  const std::vector<std::vector<double>> empty(a.tensors().size(),
                                               std::vector<double>(prints.size()));
  result.all = empty;
  result.parts.assign(FingerprintDistances::kParts, empty);
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    const std::vector<float> values = ReadRows(a, i, a_places);
    const auto row = [&](size_t k) {
      return absl::MakeConstSpan(values).subspan(k * static_cast<size_t>(width),
                                                 static_cast<size_t>(width));
    };
    for (size_t j = 0; j < prints.size(); ++j) {
      FingerprintCounter all(prints[j]);
      std::vector<FingerprintCounter> parts(FingerprintDistances::kParts, all);
      for (size_t k = 0; k < a_places.size(); ++k) {
        all.Add(row(k));
        parts[part_of(k)].Add(row(k));
      }
      result.all[i][j] = all.Distance();
      for (size_t part = 0; part < parts.size(); ++part) {
        // A sample shorter than the typical rows leaves its part empty: it says nothing.
        result.parts[part][i][j] = parts[part].rows() > 0 ? parts[part].Distance() : 0.0;
      }
    }
  }
  return result;
}

}  // namespace aerie
