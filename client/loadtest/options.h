// What a load test is to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/client_options.h"
#include "client/loadtest/accept_process.h"
#include "client/loadtest/arrival_schedule.h"
#include "client/loadtest/load_profile.h"
#include "common/dtype.h"
#include "common/session_options.h"

namespace aerie::loadtest {

// What a round's latency, from its intended start, or the run as a whole has to keep to.
struct SloTerm {
  enum class Kind { kQuantile, kMean, kMax, kMinRate, kMinAcceptLength };
  std::string text;  // as typed: "p99=20ms"
  Kind kind = Kind::kQuantile;
  double quantile = 0;     // of kQuantile, 0..1
  absl::Duration latency;  // at most; of the first three
  double least = 0;        // of the others: rounds a second, tokens
};

// Shares of rounds beside which a fault is put; see fault_injector.h. Each 0..1.
struct FaultOptions {
  double cancel = 0, deadline = 0, slow_reader = 0, reconnect = 0, malformed = 0;
  bool Any() const { return cancel + deadline + slow_reader + reconnect + malformed > 0; }
};

struct LoadOptions {
  std::string address = "127.0.0.1:50051";
  rpc::ChannelFiles files;      // TLS and token
  rpc::ChannelSecrets secrets;  // what stands in them, once the test is prepared
  TransportKind transport = TransportKind::kUnary;
  bool shared_memory = false;  // rows are left in shared memory, a segment for each connection
  int32_t connections = 1;     // sessions take turns on them
  absl::Duration deadline = absl::Seconds(30);  // of one call; > 0

  // Open sessions; of an open loop, so many rounds at most are under way at a time. Levels >= 1
  LoadProfile sessions = LoadProfile::Constant(8);
  // Open loop: rounds a second. Unset: closed, each session starts a round when the last one is
  // done.
  std::optional<LoadProfile> rate;
  Arrivals arrivals = Arrivals::kPoisson;  // open loop only
  double burstiness = 1;                   // of kGamma; > 0
  // Closed loop only: from a round's end to the next one's start, as a target that verifies.
  absl::Duration think_time;

  // When the run ends: after so many sessions, so many rounds, a time that includes the warm-up, or
  // with the profile. At most one is set; without any, every session runs once.
  std::optional<int64_t> requests;
  std::optional<int64_t> total_rounds;
  std::optional<absl::Duration> duration;
  absl::Duration warmup;  // at the start, left out of all figures but the reconciliation
  // Of one session; unset: kDefaultRounds, or to the recording's end.
  std::optional<int64_t> rounds;

  int32_t k = 4;  // >= 1, at most the server's; without a tree
  std::optional<TreeShape> tree;
  float temperature = 0.0f;  // 0: greedy drafts
  bool adaptive_k = false;   // the server chooses up to k
  // What the made-up target says a verification took, for adaptive k. > 0
  absl::Duration verify_time = absl::Milliseconds(20);
  std::string client;  // whose quota and share of the server

  // Synthetic rows.
  int64_t prompt_rows = 64;    // >= 1
  std::optional<DType> dtype;  // unset: bfloat16, or the first that the server takes
  bool fp8 = false;            // rows travel as float8_e4m3fn; `dtype` is unset
  bool fused = false;          // rows as if they had been through the drafter's fc
  AcceptProcess accept = AcceptProcess::ByChance({0.7});
  std::string recording;  // empty: synthetic rows
  uint64_t seed = 1;

  FaultOptions faults;
  absl::Duration fault_deadline = absl::Microseconds(500);  // of calls that are to miss theirs; > 0

  std::vector<SloTerm> slo;
  double error_budget = 0;                // share of rounds that may fail
  std::optional<absl::Duration> goodput;  // rounds up to this, from the intended start, are good
  // Where the server's metrics page is (PageAddress), scraped before and after; empty: not
  // reconciled. Over HTTPS the TLS files are those of calls.
  std::string metrics;
  std::string metrics_token_file;  // with the page's token; empty: that of calls

  // Empty: none; "-": standard output.
  std::string json_path, csv_path, hdr_path, html_path;
  bool quiet = false;

  static constexpr int64_t kDefaultRounds = 64;
  static constexpr int32_t kMaxSessions = 4096;

  // Tokens that each round asks for.
  int32_t TokensPerRound() const { return tree.has_value() ? tree->total_tokens : k; }
  // What each session asks for.
  SessionOptions SessionOptionsOf() const;
  // The file with the token that the page gets, behind the flag that names it; an empty path: none.
  std::pair<const char*, std::string> MetricsToken() const;
  // When no new round is begun, from the start of the run; infinite when a count ends it.
  absl::Duration EndOfLoad() const;

  // INVALID_ARGUMENT that names flag, value and remedy.
  absl::Status Validate() const;
};

// "p99=20ms", "mean=5ms", "max=1s", "rate=200" or "accept-length=2.5". INVALID_ARGUMENT: none.
absl::StatusOr<SloTerm> ParseSlo(absl::string_view text);

// The message of a flag that cannot be: flag, value, remedy.
absl::Status BadFlag(absl::string_view flag, absl::string_view value, absl::string_view remedy);

}  // namespace aerie::loadtest
