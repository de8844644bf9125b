// A worker that makes up histories: random calls for sequences of its own, and what each of them
// must be answered.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/draft_tree.h"
#include "server/engine/draft_call.h"
#include "tests/server/engine/core_driver.h"

namespace aerie {

// Draft rows that any session of a ReplayWorker computes for one proposal, at most.
inline constexpr int64_t kMostTreeRows = 16;

// A row as the worker sent it: its token, and which history the hidden state is of.
struct SentRow {
  int32_t token = 0;
  uint64_t variant = 0;
};

// What a worker knows of its sequence.
struct ReplaySequence {
  std::string id;
  Manifest manifest;
  SessionOptions options;  // in force
  int64_t start = 0;
  std::vector<SentRow> rows;     // from row `start` on, as far as the worker went
  size_t held = 0;               // of them, those that the server is known to hold
  DraftTree proposal;            // the last one that is not settled; empty: there is none
  std::vector<int32_t> context;  // all tokens before it
};

// A call under way, with all that its answer must be.
struct ReplayCall {
  ReplyPtr<DraftResult> reply;
  ReplaySequence before;
  int32_t k = 0;
  bool judged = false;  // whether `accepted` must be set
  int32_t accepted = 0;
};

class ReplayWorker {
 public:
  ReplayWorker(uint64_t seed, const EngineOptions& engine, CoreDriver* driver)
      : random_(seed), engine_(engine), driver_(driver) {}

  int Draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  // Of any kind, opened.
  ReplaySequence NewSequence();
  // Opens *fork with rows of `source`; false: the server does not let it.
  bool Fork(const ReplaySequence& source, ReplaySequence* fork);
  // Whether another call could pass the context limit.
  bool IsFull(const ReplaySequence& sequence) const;

  // Goes on along a path of the last proposal and with tokens of the target's own, or goes back;
  // rows that the server is not known to hold are sent again.
  ReplayCall Call(ReplaySequence* sequence);
  // Checks the answer, and learns from it where the server stands.
  void TakeAnswer(const ReplayCall& call, ReplaySequence* sequence);

 private:
  SessionOptions AnyOptions();
  // The tokens of some path from the root of `tree`.
  std::vector<int32_t> AnyPath(const DraftTree& tree);
  static void Judge(size_t base, ReplaySequence* sequence, ReplayCall* call);
  DraftTree Reference(const ReplaySequence& sequence, int32_t k) const;

  std::mt19937_64 random_;
  const EngineOptions engine_;
  CoreDriver* const driver_;
};

}  // namespace aerie
