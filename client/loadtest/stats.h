// What a load test counts. Every worker has one of its own; they are added up at the end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/acceptance.h"
#include "client/loadtest/histogram.h"

namespace aerie::loadtest {

// Within the measured window: what began after the warm-up and ended before the drain.
struct MeasuredStats {
  Histogram prompt, round, open, close;  // as the worker waited for them; prompts carry a draft too
  Histogram queue, extend, step, total;  // of the same rounds, as the server says
  AcceptanceTally acceptance;
  int64_t rounds = 0;            // draft calls behind the prompt's, with or without a proposal
  int64_t committed_tokens = 0;  // accepted and bonus; rounds are never counted as tokens
  int64_t sent_rows = 0, sent_bytes = 0;
  int64_t short_drafts = 0;  // fewer tokens than asked for
  int64_t sessions_finished = 0, sessions_failed = 0, sessions_at_context_limit = 0;
  int64_t resyncs = 0, repeats = 0;
  int64_t trigrams = 0, distinct_trigrams = 0;  // of the committed tokens, a session at a time

  void Merge(const MeasuredStats& other);
};

// Over the whole run, so that it can be compared with what the server counted.
struct WholeStats {
  AcceptanceTally acceptance;  // of the sessions below
  int64_t committed_tokens = 0;
  int64_t sessions_compared = 0;
  std::vector<std::string> differences;  // the first few, in words
  int64_t difference_count = 0;
  std::map<std::string, int64_t> errors;  // by code name
  std::string first_error;

  void AddError(const absl::Status& status);
  void AddDifference(std::string words);
  int64_t error_count() const;
  void Merge(const WholeStats& other);
};

}  // namespace aerie::loadtest
