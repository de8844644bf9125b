// When rows count as wrong. Each number stands between what honest rows of other texts reach and
// what wrong rows reach; docs/wiring-guard.md has both.
#pragma once

#include <cstdint>

namespace aerie {

struct GuardThresholds {
  // A vote. Fewer rows: noise of single rows; more: later. Values of one text stay alike however
  // many rows, so that votes of several sessions tell more than longer ones.
  int32_t rows_per_vote = 16;
  int32_t votes_kept = 12;  // of a source; the oldest of the session with most of them goes first

  // Of the median over votes. 0: declared, 1: the other.
  double other_capture = 0.65;  // one capture alone: wrong if it is far, suspect if it is near
  double near_capture = 0.8;    // and wrong, of a capture at most two layers away
  double layer_shift = 0.5;     // the mean over all captures towards the next layer
  double shift_of_each = 0.25;  // and of each of them
  // Values that are so many times larger or smaller than recorded are of no recorded capture.
  double size_factor = 2.5;
  // Mean squared distance from every landmark beyond which a vote explains nothing: texts that
  // repeat one word look like no layer at all.
  double odd_misfit = 0.2;

  // Distances of rows with an equal token over those of any rows.
  double token_apart = 0.6;    // at least, for the right token
  double token_nearer = 0.75;  // of that at most, for another
  int64_t token_pairs = 8;     // of each kind

  // Votes that "suspect" needs.
  int32_t suspect_votes = 2;
  // Votes that "wrong" needs, and sessions that they come from: plain cases, a neighbouring layer,
  // and all captures one layer off. One text alone can look like a neighbouring layer at one
  // capture, but not at all of them.
  int32_t plain_votes = 3;
  int32_t near_votes = 6, near_sessions = 3;
  int32_t shift_votes = 4, shift_sessions = 2;
  int32_t shift_votes_of_one_session = 12;

  // Votes in a row that change the state: up at once to suspect, to wrong, and back to ok.
  int32_t alarm_after = 2;
  int32_t calm_after = 6;
};

}  // namespace aerie
