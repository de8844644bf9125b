// What a load test is to do, from its command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/client_options.h"
#include "common/dtype.h"
#include "common/session_options.h"

namespace aerie::loadtest {

struct LoadOptions {
  std::string address = "127.0.0.1:50051";
  TransportKind transport = TransportKind::kUnary;
  absl::Duration deadline = absl::Seconds(30);  // of one call; > 0

  // Closed loop: so many sessions are open at a time, each with one call under way. >= 1
  int32_t sessions = 8;
  // Sessions to run in all; unset with a duration. >= 1
  std::optional<int64_t> requests;
  // How long new rounds are begun, warm-up included; unset: until `requests` are done.
  std::optional<absl::Duration> duration;
  absl::Duration warmup;  // at the start, left out of all figures but the reconciliation
  std::optional<int64_t>
      rounds;     // of one session; unset: kDefaultRounds, or to the recording's end
  int32_t k = 4;  // >= 1, at most the server's; without a tree
  std::optional<TreeShape> tree;
  float temperature = 0.0f;  // 0: greedy drafts
  bool adaptive_k = false;   // the server chooses up to k
  // What the made-up target says a verification took, for adaptive k. > 0
  absl::Duration verify_time = absl::Milliseconds(20);
  std::string client;        // whose quota and share of the server
  int64_t prompt_rows = 64;  // synthetic only; >= 1
  std::optional<DType>
      dtype;  // synthetic only; unset: bfloat16, or the first that the server takes
  std::vector<double> accept = {
      0.7};               // synthetic only; [i]: probability, given that all before were accepted
  std::string recording;  // empty: synthetic rows
  uint64_t seed = 1;

  std::string json_path;  // empty: none; "-": standard output
  bool quiet = false;

  static constexpr int64_t kDefaultRounds = 64;

  // Tokens that each round asks for.
  int32_t TokensPerRound() const { return tree.has_value() ? tree->total_tokens : k; }
  // What each session asks for.
  SessionOptions SessionOptionsOf() const;

  // INVALID_ARGUMENT that names flag, value and remedy.
  absl::Status Validate() const;
};

// What the command line asks for.
struct CommandLine {
  LoadOptions options;
  // Set when the program is done at once: help or version (0), or bad usage (2); `text` says it.
  std::optional<int> exit_code;
  std::string text;
};

CommandLine ParseCommandLine(int argc, const char* const* argv);

}  // namespace aerie::loadtest
