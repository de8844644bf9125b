#include "client/loadtest/load_profile.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

// The text that follows in messages; cut, since it may be anything.
absl::Status Bad(absl::string_view seen) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", seen.substr(0, 60),
                   "' is no load; expected a level, or levels and ramps with their times; write "
                   "for example 200, or 100:10s,200:10s,200-800:30s"));
}

absl::StatusOr<double> ParseLevel(absl::string_view text) {
  double level = 0;
  if (!absl::SimpleAtod(text, &level) || !std::isfinite(level) || level < 0 || level > 1e9) {
    return Bad(text);
  }
  return level;
}

absl::StatusOr<ProfilePiece> ParsePiece(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  if (parts.size() != 2) return Bad(text);
  const std::vector<absl::string_view> levels = absl::StrSplit(parts[0], '-');
  if (levels.size() > 2) return Bad(text);
  ProfilePiece piece;
  AERIE_ASSIGN_OR_RETURN(piece.from, ParseLevel(levels.front()));
  AERIE_ASSIGN_OR_RETURN(piece.to, ParseLevel(levels.back()));
  if (!absl::ParseDuration(parts[1], &piece.length) || piece.length <= absl::ZeroDuration() ||
      piece.length == absl::InfiniteDuration()) {
    return Bad(text);
  }
  return piece;
}

double Slope(const ProfilePiece& piece) {
  return (piece.to - piece.from) / absl::ToDoubleSeconds(piece.length);
}

double LevelWithin(const ProfilePiece& piece, absl::Duration time) {
  if (piece.from == piece.to) return piece.from;
  return piece.from + Slope(piece) * absl::ToDoubleSeconds(time);
}

double AreaWithin(const ProfilePiece& piece, absl::Duration time) {
  return 0.5 * (piece.from + LevelWithin(piece, time)) * absl::ToDoubleSeconds(time);
}

}  // namespace

LoadProfile LoadProfile::Constant(double level) {
  return LoadProfile({{level, level, absl::InfiniteDuration()}});
}

absl::StatusOr<LoadProfile> LoadProfile::Parse(absl::string_view text) {
  std::vector<ProfilePiece> pieces;
  if (text.find(':') == absl::string_view::npos) {
    AERIE_ASSIGN_OR_RETURN(const double level, ParseLevel(text));
    pieces.push_back({level, level, absl::InfiniteDuration()});
  } else {
    for (const absl::string_view part : absl::StrSplit(text, ',')) {
      AERIE_ASSIGN_OR_RETURN(pieces.emplace_back(), ParsePiece(part));
    }
  }
  LoadProfile profile(std::move(pieces));
  if (profile.MaxLevel() == 0) return Bad(text);
  return profile;
}

absl::Duration LoadProfile::length() const {
  absl::Duration sum;
  for (const ProfilePiece& piece : pieces_) sum += piece.length;
  return sum;
}

double LoadProfile::MaxLevel() const {
  double most = 0;
  for (const ProfilePiece& piece : pieces_) most = std::max({most, piece.from, piece.to});
  return most;
}

double LoadProfile::LevelAt(absl::Duration time) const {
  for (const ProfilePiece& piece : pieces_) {
    if (time < piece.length) return LevelWithin(piece, time);
    time -= piece.length;
  }
  return 0;
}

size_t LoadProfile::PieceAt(absl::Duration time) const {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (time < pieces_[i].length) return i;
    time -= pieces_[i].length;
  }
  return pieces_.size() - 1;
}

double LoadProfile::AreaBefore(absl::Duration time) const {
  double area = 0;
  for (const ProfilePiece& piece : pieces_) {
    const absl::Duration within = std::min(time, piece.length);
    if (within <= absl::ZeroDuration()) break;
    area += AreaWithin(piece, within);
    time -= piece.length;
  }
  return area;
}

absl::Duration LoadProfile::TimeOfArea(double area) const {
  absl::Duration begin;
  for (const ProfilePiece& piece : pieces_) {
    const bool infinite = piece.length == absl::InfiniteDuration();
    const double whole = infinite ? HUGE_VAL : AreaWithin(piece, piece.length);
    if (area < whole) {
      if (piece.from == piece.to) return begin + absl::Seconds(area / piece.from);
      // from * t + slope / 2 * t^2 = area, in the form that loses no digits.
      const double root = std::sqrt(piece.from * piece.from + 2 * Slope(piece) * area);
      return begin +
             (area == 0 ? absl::ZeroDuration() : absl::Seconds(2 * area / (piece.from + root)));
    }
    area -= whole;
    begin += piece.length;
  }
  return absl::InfiniteDuration();
}

absl::Duration LoadProfile::TimeOfLevel(double level, absl::Duration from) const {
  absl::Duration begin;
  for (const ProfilePiece& piece : pieces_) {
    const absl::Duration end = begin + piece.length;
    if (from < end) {
      const absl::Duration start = std::max(from, begin);
      if (LevelWithin(piece, start - begin) >= level) return start;
      if (piece.to >= level && piece.to > piece.from) {
        const absl::Duration at = begin + absl::Seconds((level - piece.from) / Slope(piece));
        if (at < end) return std::max(at, start);
      }
    }
    begin = end;
  }
  return absl::InfiniteDuration();
}

}  // namespace aerie::loadtest
