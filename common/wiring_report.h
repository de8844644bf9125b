// What a running server thinks of the rows that one worker sends: whether they were captured where
// the drafter was measured to want them.
//
// Said of a *source*, that is a client and a target: ten good workers must not hide a bad one.
// Positions are on a scale of their own: 0 is where rows of the declared capture lie, 1 where rows
// of the alternative lie, whatever the unit of the channels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/wiring.h"

namespace aerie {

enum class WiringState {
  kUnknown,  // nothing to compare with, or too few rows so far
  kOk,
  kSuspect,  // something does not fit, but an odd text could still explain it
  kWrong,
};

// "unknown", "ok", "suspect", "wrong".
absl::string_view WiringStateName(WiringState state);

// What the guard does about it.
enum class GuardMode {
  kOff,
  kAlert,       // tells: metrics, log, reports
  kNotServing,  // and health is NOT_SERVING while a source is wrong
};

// "off", "alert", "not-serving".
absl::string_view GuardModeName(GuardMode mode);

// One capture of the wiring, as its rows look.
struct PlaceReport {
  Capture declared;
  Capture looks_like;     // the recorded capture that the rows are nearest to
  double position = 0.0;  // towards looks_like; 0 when that is the declared one
  double size = 0.0;      // of the rows' values over those of the recording, by channel; 1: alike
  friend bool operator==(const PlaceReport&, const PlaceReport&) = default;
};

// Whether the tokens belong to the states: rows of equal tokens resemble each other, whatever the
// text. Each number is the distance of two rows that share a token, over that of any two rows;
// about 1 says that the token has nothing to do with the state.
struct AlignmentReport {
  double preceding = 0.0;  // the token in front of the row's: the right one, well below 1
  double own = 0.0;        // the row's token: it lags one behind
  double earlier = 0.0;    // two in front: it is one ahead
  int64_t pairs = 0;       // that the scarcest of the three rests on
  friend bool operator==(const AlignmentReport&, const AlignmentReport&) = default;
};

// How drafts fare against what the recording promised. Index 0 is depth 1.
struct DraftingReport {
  double expected_accuracy = 0.0;  // of depth 1
  double expected_log_likelihood = 0.0;
  double expected_accept_length = 0.0;
  std::optional<double> accuracy;        // on served rows: the most likely token was the next one
  std::optional<double> log_likelihood;  // of committed tokens in the draft vocabulary
  std::optional<double> accept_length;
  std::vector<double> acceptance;  // share of proposals kept to this depth
  std::vector<double> expected;    // the same in the recording
  int64_t judged = 0;              // proposals
  int64_t worker_counts = 0;       // of these, where the worker told its own count
  int64_t worker_differs = 0;      // and it was another
  bool below_expectation = false;  // well below, beyond chance
  friend bool operator==(const DraftingReport&, const DraftingReport&) = default;
};

struct ReplayReport {
  int64_t answered = 0;  // windows of rows that were replayed
  std::string best;      // "as sent", "captures 1 and 2 swapped", "tokens one row earlier"
  double gain = 0.0;     // nats a row over the rows as sent
  friend bool operator==(const ReplayReport&, const ReplayReport&) = default;
};

struct WiringReport {
  std::string client, target;
  WiringState state = WiringState::kUnknown;
  absl::Time since = absl::InfinitePast();  // of the state
  std::string verdict;                      // in words: what is seen, and what to check

  int64_t rounds = 0;        // calls that brought rows
  int64_t rows = 0;          // that they brought
  int64_t sampled_rows = 0;  // that were looked at
  int64_t votes = 0;         // groups of sampled rows that were weighed
  int64_t odd_votes = 0;     // of these, like none of the recorded captures: left out
  int64_t sessions = 0;      // that the weighed rows come from

  std::vector<PlaceReport> places;          // in wiring order; empty before the first vote
  std::optional<double> one_layer_earlier;  // position of all captures together towards it
  std::optional<double> one_layer_later;
  std::optional<AlignmentReport> alignment;
  std::optional<DraftingReport> drafting;
  std::optional<ReplayReport> replay;

  friend bool operator==(const WiringReport&, const WiringReport&) = default;
};

// Worst is wrong, then suspect, unknown, ok.
bool IsWorse(WiringState a, WiringState b);
// The worst state of all: wrong, suspect, unknown, ok; unknown when there is no report.
WiringState WorstWiringState(absl::Span<const WiringReport> reports);

}  // namespace aerie
