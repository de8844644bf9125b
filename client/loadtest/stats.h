// What a load test counts. Every worker has one of its own; they are added up at the end.
//
// Two latencies of each round: from its send, which is what a worker that waits its turn sees, and
// from its intended start, which is what a user sees. They differ where rounds had to wait for a
// session that was still busy: a server that stalls shows in the second one alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/acceptance.h"
#include "client/loadtest/histogram.h"

namespace aerie::loadtest {

// Of the rounds whose intended start lay in one piece of the load.
struct PieceStats {
  Histogram round, round_intended;
  AcceptanceTally acceptance;
  int64_t failed_rounds = 0, committed_tokens = 0;

  void Merge(const PieceStats& other);
};

// Within the measured window: what began after the warm-up and ended before the drain.
struct MeasuredStats {
  Histogram prompt, round, open, close;            // from their send; prompts carry a draft too
  Histogram round_intended;                        // of the same rounds, from their intended start
  std::map<std::string, Histogram> round_by_code;  // all rounds, from the intended start
  Histogram queue, extend, step, total;            // of the same rounds, as the server says
  // From when a round could start (its time had come, its session was free) to its send: what the
  // tester itself added.
  Histogram wake_lag;
  AcceptanceTally acceptance;
  int64_t rounds = 0;         // draft calls behind the prompt's, with or without a proposal
  int64_t failed_rounds = 0;  // not among them
  int64_t late_rounds = 0;    // that found no session free at their intended start
  int64_t good_rounds = 0, good_tokens = 0;  // within --goodput
  int64_t committed_tokens = 0;  // accepted and bonus; rounds are never counted as tokens
  int64_t sent_rows = 0, sent_bytes = 0;
  int64_t short_drafts = 0;  // fewer tokens than asked for
  int64_t resyncs = 0, repeats = 0;
  std::vector<PieceStats> pieces;

  PieceStats& PieceOf(size_t piece);
  void Merge(const MeasuredStats& other);
};

// What the server has to have counted of sessions that went as they should.
struct SureCounts {
  AcceptanceTally acceptance;
  int64_t sessions = 0, proposals = 0, committed_tokens = 0, rows = 0, bytes = 0;

  void Merge(const SureCounts& other);
};

// Of calls whose outcome at the server cannot be known (they failed, were cut off, or brought rows
// a second time): it has counted up to so much of them.
struct UnsureCounts {
  int64_t sessions = 0, calls = 0, committed_tokens = 0, rows = 0, bytes = 0;

  void Merge(const UnsureCounts& other);
};

// Faults of one kind that were put beside the rounds.
struct FaultTally {
  int64_t injected = 0, as_expected = 0;
  std::map<std::string, int64_t> by_code;
  std::string first_surprise;  // what was seen and what was expected

  void Merge(const FaultTally& other);
};

// Over the whole run, so that it can be compared with what the server counted.
struct WholeStats {
  SureCounts sure;
  UnsureCounts unsure;
  int64_t rounds = 0, failed_rounds = 0;  // draft calls behind the prompt's
  int64_t sessions_finished = 0, sessions_failed = 0, sessions_at_context_limit = 0;
  int64_t sessions_compared = 0, sessions_not_compared = 0;
  std::vector<std::string> differences;  // the first few, in words
  int64_t difference_count = 0;
  std::map<std::string, int64_t> errors;  // by code name
  std::string first_error;
  std::map<std::string, FaultTally> faults;     // by kind
  int64_t trigrams = 0, distinct_trigrams = 0;  // of the committed tokens, a session at a time

  void AddError(const absl::Status& status);
  void AddDifference(std::string words);
  int64_t error_count() const;
  int64_t surprise_count() const;  // faults that were not answered as expected
  void Merge(const WholeStats& other);
};

// Since the live line last looked; with warm-up and drain.
struct RecentStats {
  Histogram round_intended, round;
  AcceptanceTally acceptance;
  int64_t tokens = 0, bytes = 0, errors = 0;

  void Merge(const RecentStats& other);
};

}  // namespace aerie::loadtest
