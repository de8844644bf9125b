// How much load is asked for, over time: rounds a second of an open loop, or open sessions of a
// closed one.
//
// A text is one level for the whole run ("200"), or pieces one behind the other, each a level or a
// ramp between two and how long it lasts: "100:10s,200:10s,200-800:30s".
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace aerie::loadtest {

// Levels run evenly from `from` to `to`. >= 0
struct ProfilePiece {
  double from = 0, to = 0;
  absl::Duration length;
};

// Immutable. Times count from the start of the run.
class LoadProfile {
 public:
  // Without an end.
  static LoadProfile Constant(double level);
  // INVALID_ARGUMENT: no number, a negative one, a piece without a time, or all levels 0.
  static absl::StatusOr<LoadProfile> Parse(absl::string_view text);

  const std::vector<ProfilePiece>& pieces() const { return pieces_; }
  // Infinite of a constant one.
  absl::Duration length() const;
  double MaxLevel() const;
  // Of a constant profile, and of none with several levels.
  bool IsConstant() const { return pieces_.size() == 1 && pieces_[0].from == pieces_[0].to; }

  // 0 behind the end.
  double LevelAt(absl::Duration time) const;
  // Which piece holds `time`; the last one behind the end.
  size_t PieceAt(absl::Duration time) const;
  // The integral of the level over [0, time): how many rounds an open loop has asked for by then.
  double AreaBefore(absl::Duration time) const;
  // When that integral reaches `area`; infinite when it never does.
  absl::Duration TimeOfArea(double area) const;
  // The first time from `from` on with at least `level`; infinite when there is none.
  absl::Duration TimeOfLevel(double level, absl::Duration from) const;

 private:
  explicit LoadProfile(std::vector<ProfilePiece> pieces) : pieces_(std::move(pieces)) {}
  std::vector<ProfilePiece> pieces_;  // not empty; only a sole one may be infinite
};

}  // namespace aerie::loadtest
