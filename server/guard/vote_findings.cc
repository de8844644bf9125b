#include "server/guard/vote_findings.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "common/check.h"
#include "server/guard/verdict_text.h"

namespace aerie {
namespace {

// Past the middle of the way: else the nearest landmark is no news.
constexpr double kNamedFrom = 0.5;

double Median(std::vector<double> values) {
  AERIE_CHECK(!values.empty()) << "the median of nothing";
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool Neighbours(const Capture& a, const Capture& b) {
  return a.kind == Capture::Kind::kBoundary && b.kind == a.kind &&
         std::abs(a.boundary - b.boundary) == 1;
}

// The alternative that is `step` layers from the place, if rows of it can be told apart.
std::optional<size_t> Neighbour(const GuardPlace& place, int32_t step) {
  if (place.capture.kind != Capture::Kind::kBoundary) return std::nullopt;
  const Capture wanted = Capture::Boundary(place.capture.boundary + step);
  for (size_t a = 0; a < place.alternatives.size(); ++a) {
    const GuardAlternative& alternative = place.alternatives[a];
    if (alternative.capture == wanted && alternative.told_apart) return a;
  }
  return std::nullopt;
}

class Weighing {
 public:
  Weighing(const GuardProfile& profile, const GuardThresholds& thresholds,
           const std::deque<RowVote>& votes)
      : profile_(profile), thresholds_(thresholds) {
    for (const RowVote& vote : votes) {
      if (IsOdd(vote, thresholds)) continue;
      votes_.push_back(&vote);
      sessions_.insert(vote.session);
    }
  }

  Findings Run() {
    found_.votes = Votes();
    if (votes_.empty()) return std::move(found_);
    found_.one_layer_earlier = LayerShift(-1);
    found_.one_layer_later = LayerShift(1);
    for (size_t i = 0; i < profile_.places.size(); ++i) WeighPlace(i);
    WeighShift(found_.one_layer_earlier, -1);
    WeighShift(found_.one_layer_later, 1);
    if (found_.level != FindingLevel::kNone) found_.verdict = CaptureVerdict(found_.places);
    WeighAlignment();
    return std::move(found_);
  }

 private:
  int64_t Votes() const { return static_cast<int64_t>(votes_.size()); }
  int64_t Sessions() const { return static_cast<int64_t>(sessions_.size()); }

  void Raise(bool enough) {
    if (Votes() < thresholds_.suspect_votes) return;
    found_.level = std::max(found_.level, enough ? FindingLevel::kWrong : FindingLevel::kSuspect);
  }

  // Of all captures together: the texts that pull one capture towards its neighbour do not pull the
  // others.
  std::optional<double> LayerShift(int32_t step) const {
    std::vector<double> shifts(votes_.size());
    int32_t places = 0;
    for (size_t i = 0; i < profile_.places.size(); ++i) {
      const std::optional<size_t> neighbour = Neighbour(profile_.places[i], step);
      if (!neighbour.has_value()) continue;
      ++places;
      for (size_t v = 0; v < votes_.size(); ++v) {
        // One capture far out must not speak for all.
        const double position = votes_[v]->places[i].positions[*neighbour];
        shifts[v] += std::clamp(position, -1.0, 1.5);
      }
    }
    if (places < 2) return std::nullopt;
    for (double& shift : shifts) shift /= places;
    return Median(std::move(shifts));
  }

  void WeighPlace(size_t index) {
    const GuardPlace& place = profile_.places[index];
    std::vector<float> positions;
    for (size_t a = 0; a < place.alternatives.size(); ++a) {
      positions.push_back(static_cast<float>(
          MedianOf([&](const RowVote& vote) { return double{vote.places[index].positions[a]}; })));
    }
    PlaceReport report{.declared = place.capture, .looks_like = place.capture};
    report.size = MedianOf([&](const RowVote& vote) { return double{vote.places[index].size}; });
    const size_t nearest = FindNearest(place, positions).landmark;
    if (nearest > 0 && positions[nearest - 1] >= kNamedFrom) {
      report.looks_like = place.alternatives[nearest - 1].capture;
      report.position = positions[nearest - 1];
    }
    found_.places.push_back(report);

    if (!(report.size < thresholds_.size_factor && report.size > 1.0 / thresholds_.size_factor)) {
      Raise(Votes() >= thresholds_.plain_votes);
    }
    if (report.position < thresholds_.other_capture) return;
    if (Neighbours(report.looks_like, place.capture)) {
      Raise(Votes() >= thresholds_.neighbour_votes && Sessions() >= thresholds_.neighbour_sessions);
    } else {
      Raise(Votes() >= thresholds_.plain_votes);
    }
  }

  void WeighShift(const std::optional<double>& shift, int32_t step) {
    if (!shift.has_value() || *shift < thresholds_.layer_shift) return;
    Raise((Votes() >= thresholds_.shift_votes && Sessions() >= thresholds_.shift_sessions) ||
          Votes() >= thresholds_.shift_votes_of_one_session);
    // All of them together are surer than each alone, also of what they look like.
    for (size_t i = 0; i < found_.places.size(); ++i) {
      PlaceReport& report = found_.places[i];
      const std::optional<size_t> neighbour = Neighbour(profile_.places[i], step);
      if (!neighbour.has_value() || report.looks_like != report.declared) continue;
      report.looks_like = profile_.places[i].alternatives[*neighbour].capture;
      report.position = MedianOf(
          [&](const RowVote& vote) { return double{vote.places[i].positions[*neighbour]}; });
    }
  }

  void WeighAlignment() {
    AlignmentSums sums;
    for (const RowVote* vote : votes_) sums.Add(vote->alignment);
    AlignmentReport report{.preceding = sums.Ratio(kRightAlignment),
                           .own = sums.Ratio(0),
                           .earlier = sums.Ratio(2),
                           .pairs = sums.ScarcestPairs()};
    if (report.pairs == 0) return;
    found_.alignment = report;
    const double other = std::min(report.own, report.earlier);
    if (report.pairs < thresholds_.token_pairs || report.preceding < thresholds_.token_apart ||
        !(other <= thresholds_.token_nearer * report.preceding)) {
      return;
    }
    Raise(Votes() >= thresholds_.plain_votes);
    AppendSentence(AlignmentVerdict(report), found_.verdict);
  }

  template <typename Get>
  double MedianOf(Get get) const {
    std::vector<double> values;
    for (const RowVote* vote : votes_) values.push_back(get(*vote));
    return Median(std::move(values));
  }

  const GuardProfile& profile_;
  const GuardThresholds& thresholds_;
  std::vector<const RowVote*> votes_;
  std::set<int64_t> sessions_;
  Findings found_;
};

}  // namespace

bool IsOdd(const RowVote& vote, const GuardThresholds& thresholds) {
  return std::any_of(vote.places.begin(), vote.places.end(), [&](const PlaceVote& place) {
    return !(place.misfit <= thresholds.odd_misfit);
  });
}

Findings WeighVotes(const GuardProfile& profile, const GuardThresholds& thresholds,
                    const std::deque<RowVote>& votes) {
  return Weighing(profile, thresholds, votes).Run();
}

}  // namespace aerie
