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
  // Of an even number the lower one: half of the votes are no majority for anything.
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Layers that texts of another kind can be mistaken for, at one capture.
bool Near(const Capture& a, const Capture& b) {
  return a.kind == Capture::Kind::kBoundary && b.kind == a.kind &&
         std::abs(a.boundary - b.boundary) <= 2;
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
      : profile_(profile), thresholds_(thresholds), all_votes_(votes) {
    for (const RowVote& vote : votes) {
      if (IsOdd(vote, thresholds)) continue;
      votes_.push_back(&vote);
      sessions_.insert(vote.session);
    }
  }

  Findings Run() {
    found_.votes = Votes();
    if (!votes_.empty()) WeighCaptures();
    WeighAlignment();
    return std::move(found_);
  }

 private:
  void WeighCaptures() {
    found_.one_layer_earlier = LayerShift(-1);
    found_.one_layer_later = LayerShift(1);
    for (size_t i = 0; i < profile_.places.size(); ++i) WeighPlace(i);
    WeighShift(found_.one_layer_earlier, -1);
    WeighShift(found_.one_layer_later, 1);
    if (found_.level != FindingLevel::kNone) found_.verdict = CaptureVerdict(found_.places);
  }

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
        shifts[v] += std::clamp(position, -1.0, 1.0);
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
      positions.push_back(static_cast<float>(PositionOf(index, a)));
    }
    PlaceReport report{.declared = place.capture, .looks_like = place.capture};
    report.size = MedianOf([&](const RowVote& vote) { return double{vote.places[index].size}; });
    const bool sized =
        report.size < thresholds_.size_factor && report.size > 1.0 / thresholds_.size_factor;
    const size_t named = Name(place, positions, report.size, sized);
    if (named > 0) {
      report.looks_like = place.alternatives[named - 1].capture;
      report.position = Reached(place, positions, named - 1);
    }
    found_.places.push_back(report);

    if (!sized) Raise(Votes() >= thresholds_.plain_votes);
    if (report.position < thresholds_.other_capture) return;
    if (Near(report.looks_like, place.capture)) {
      Raise(report.position >= thresholds_.near_capture && Votes() >= thresholds_.near_votes &&
            Sessions() >= thresholds_.near_sessions);
    } else {
      Raise(Votes() >= thresholds_.plain_votes);
    }
  }

  // How far rows are on the way to an alternative. To a near one they must pass the layers between:
  // some texts lean towards the one after next and not towards the next.
  static double Reached(const GuardPlace& place, const std::vector<float>& positions,
                        size_t alternative) {
    double reached = positions[alternative];
    const Capture& named = place.alternatives[alternative].capture;
    if (!Near(named, place.capture)) return reached;
    const auto [low, high] = std::minmax(named.boundary, place.capture.boundary);
    for (size_t a = 0; a < positions.size(); ++a) {
      const Capture& between = place.alternatives[a].capture;
      if (between.kind == Capture::Kind::kBoundary && between.boundary > low &&
          between.boundary < high && place.alternatives[a].told_apart) {
        reached = std::min(reached, double{positions[a]});
      }
    }
    return reached;
  }

  // What the rows look like: 1 + its alternative, or 0 for the declared capture.
  size_t Name(const GuardPlace& place, const std::vector<float>& positions, double size,
              bool sized) const {
    const auto among = sized ? Landmarks::kAll : Landmarks::kAlternatives;
    const size_t nearest = FindNearest(place, positions, static_cast<float>(size), among).landmark;
    if (nearest == 0) return 0;
    const double position = Reached(place, positions, nearest - 1);
    if (Near(place.alternatives[nearest - 1].capture, place.capture) &&
        position < thresholds_.other_capture) {
      // Between two: a neighbour that is not reached, and a far one that is.
      for (size_t a = 0; a < positions.size(); ++a) {
        const GuardAlternative& other = place.alternatives[a];
        if (other.told_apart && !Near(other.capture, place.capture) &&
            positions[a] >= thresholds_.other_capture) {
          return a + 1;
        }
      }
    }
    return !sized || position >= kNamedFrom ? nearest : 0;
  }

  void WeighShift(const std::optional<double>& shift, int32_t step) {
    if (!shift.has_value() || *shift < thresholds_.layer_shift) return;
    std::vector<std::pair<size_t, size_t>> moved;  // places and their neighbours
    for (size_t i = 0; i < profile_.places.size(); ++i) {
      const std::optional<size_t> neighbour = Neighbour(profile_.places[i], step);
      if (!neighbour.has_value()) continue;
      if (!(PositionOf(i, *neighbour) >= thresholds_.shift_of_each)) return;
      // Something farther away is no shift by one.
      if (!Near(found_.places[i].looks_like, found_.places[i].declared)) return;
      moved.emplace_back(i, *neighbour);
    }
    Raise((Votes() >= thresholds_.shift_votes && Sessions() >= thresholds_.shift_sessions) ||
          Votes() >= thresholds_.shift_votes_of_one_session);
    // All of them together are surer than each alone, also of what each looks like; unless all look
    // two layers away.
    const auto two_away = std::count_if(moved.begin(), moved.end(), [this](const auto& move) {
      const PlaceReport& report = found_.places[move.first];
      return std::abs(report.looks_like.boundary - report.declared.boundary) == 2;
    });
    if (two_away == static_cast<std::ptrdiff_t>(moved.size())) return;
    for (const auto& [place, neighbour] : moved) {
      found_.places[place].looks_like = profile_.places[place].alternatives[neighbour].capture;
      found_.places[place].position = PositionOf(place, neighbour);
    }
  }

  void WeighAlignment() {
    AlignmentSums sums;
    // Odd ones too: it takes no profile to compare rows of a text with each other.
    for (const RowVote& vote : all_votes_) sums.Add(vote.alignment);
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
    const auto votes = static_cast<int64_t>(all_votes_.size());
    if (votes < thresholds_.suspect_votes) return;
    const bool enough = votes >= thresholds_.plain_votes;
    found_.level = std::max(found_.level, enough ? FindingLevel::kWrong : FindingLevel::kSuspect);
    AppendSentence(AlignmentVerdict(report), found_.verdict);
  }

  double PositionOf(size_t place, size_t alternative) const {
    return MedianOf(
        [&](const RowVote& vote) { return double{vote.places[place].positions[alternative]}; });
  }

  template <typename Get>
  double MedianOf(Get get) const {
    std::vector<double> values;
    for (const RowVote* vote : votes_) values.push_back(get(*vote));
    return Median(std::move(values));
  }

  const GuardProfile& profile_;
  const GuardThresholds& thresholds_;
  const std::deque<RowVote>& all_votes_;
  std::vector<const RowVote*> votes_;  // without the odd ones
  std::set<int64_t> sessions_;
  Findings found_;
};

}  // namespace

bool IsOdd(const RowVote& vote, const GuardThresholds& thresholds) {
  return std::any_of(vote.places.begin(), vote.places.end(), [&](const PlaceVote& place) {
    // What makes texts odd makes their rows larger; that rows are smaller is no text's fault.
    return !(place.misfit <= thresholds.odd_misfit) && !(place.size < 1.0f);
  });
}

Findings WeighVotes(const GuardProfile& profile, const GuardThresholds& thresholds,
                    const std::deque<RowVote>& votes) {
  return Weighing(profile, thresholds, votes).Run();
}

}  // namespace aerie
