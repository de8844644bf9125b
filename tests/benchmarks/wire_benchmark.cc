// aerie-wire-benchmark: what a call takes for each way in which its rows may travel, from rows in
// the worker's memory to the answer, beside a drafter that computes nothing. Prints JSON.
//
//   aerie-wire-benchmark --serve FILE --hidden N   serves until stdin ends; FILE: its addresses
//   aerie-wire-benchmark --server A,B --hidden N   asks them
//
// What a reader would get wrong: all ways are asked in turns, and what is compared are low
// quantiles, since other programs only ever add to a time. Encoding at the worker is part of it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/draft_client.h"
#include "common/rpc/codec.h"
#include "common/status_macros.h"
#include "tests/benchmarks/arena_times.h"
#include "tests/benchmarks/wire_server.h"

namespace aerie {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kPromptRows = 64;

struct Flags {
  std::string serve;
  std::vector<std::string> server;
  std::vector<int64_t> rows = {1, 3, 512};
  int32_t hidden = 576, calls = 400, many_calls = 40;
};

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

struct Way {
  const char* name;
  DType dtype = DType::kBF16;
  bool fp8 = false, fused = false;
  RowTravel travel = RowTravel::kInline;
};
// The first one is what the others are held against.
constexpr Way kWays[] = {{.name = "bf16"},
                         {.name = "fp32", .dtype = DType::kF32},
                         {.name = "fp8", .fp8 = true},
                         {.name = "bf16_fused", .fused = true},
                         {.name = "bf16_shm", .travel = RowTravel::kSharedMemory}};

absl::StatusOr<Manifest> ManifestOf(const Way& way, const v1::DrafterInfo& drafter) {
  Manifest manifest;
  manifest.target_id = "benchmark";
  manifest.num_layers = static_cast<int32_t>(drafter.target_num_layers());
  manifest.hidden_size = static_cast<int32_t>(drafter.target_hidden_size());
  manifest.vocab_size = static_cast<int32_t>(drafter.vocab_size());
  AERIE_ASSIGN_OR_RETURN(manifest.wiring,
                         rpc::DecodeWiring(drafter.captures(), manifest.num_layers));
  manifest.dtype = way.dtype;
  manifest.fp8 = way.fp8;
  if (way.fused) {
    manifest.fused_width = static_cast<int32_t>(drafter.hidden_size());
    manifest.fc_digest = drafter.fc_digest();
  }
  return manifest;
}

// One way to one address: a client, a session with a prompt, rows to send.
class Lane {
 public:
  static absl::StatusOr<std::unique_ptr<Lane>> Open(const Way& way, const std::string& address,
                                                    int64_t most_rows) {
    auto lane = std::make_unique<Lane>();
    ClientOptions options;
    options.deadline = absl::Seconds(60);
    options.rows = way.travel;
    AERIE_ASSIGN_OR_RETURN(lane->client_, DraftClient::Create(address, options));
    AERIE_ASSIGN_OR_RETURN(const auto info, lane->client_->ServerInfo());
    AERIE_ASSIGN_OR_RETURN(lane->manifest_, ManifestOf(way, info->drafters(0)));
    AERIE_ASSIGN_OR_RETURN(lane->session_, lane->client_->Open(lane->manifest_, {}));
    most_rows = std::max(most_rows, kPromptRows);
    lane->tokens_.assign(static_cast<size_t>(most_rows), 5);
    const int64_t row_bytes =
        lane->manifest_.row_width() * static_cast<int64_t>(DTypeSize(way.dtype));
    lane->bytes_.assign(static_cast<size_t>(most_rows * row_bytes), '\0');
    // Upper bytes of both types: 0.5 and -0.5 in turn, as far as it goes.
    for (size_t i = DTypeSize(way.dtype) - 1; i < lane->bytes_.size(); i += DTypeSize(way.dtype)) {
      lane->bytes_[i] = i % 3 == 0 ? '\x3f' : '\xbf';
    }
    AERIE_RETURN_IF_ERROR(lane->Draft(0, kPromptRows, 0));
    return lane;
  }

  // Rows behind the prompt, in the place of those of the last call.
  absl::Status Draft(int64_t rows) { return Draft(kPromptRows, rows, 1); }

 private:
  absl::Status Draft(int64_t first, int64_t count, int32_t k) {
    AERIE_ASSIGN_OR_RETURN(const HiddenRows rows,
                           HiddenRows::Create(manifest_.dtype, static_cast<int64_t>(tokens_.size()),
                                              manifest_.row_width(), bytes_));
    return session_
        ->Draft({.base_length = first,
                 .tokens = absl::MakeConstSpan(tokens_).subspan(0, static_cast<size_t>(count)),
                 .rows = rows.Slice(0, count),
                 .k = k})
        .status;
  }

  std::unique_ptr<DraftClient> client_;
  std::unique_ptr<DraftSession> session_;
  Manifest manifest_;
  std::vector<int32_t> tokens_;
  std::string bytes_;
};

absl::StatusOr<nlohmann::json> Compare(const std::string& address, const Flags& flags) {
  const int64_t most = *std::max_element(flags.rows.begin(), flags.rows.end());
  std::vector<std::unique_ptr<Lane>> lanes;
  for (const Way& way : kWays) {
    AERIE_ASSIGN_OR_RETURN(lanes.emplace_back(), Lane::Open(way, address, most));
  }
  nlohmann::json out = nlohmann::json::array();
  for (const int64_t rows : flags.rows) {
    const int32_t calls = rows > 64 ? flags.many_calls : flags.calls;
    std::vector<std::vector<double>> times(lanes.size());
    for (int32_t call = -calls / 10; call < calls; ++call) {
      for (size_t i = 0; i < lanes.size(); ++i) {
        const Clock::time_point start = Clock::now();
        AERIE_RETURN_IF_ERROR(lanes[i]->Draft(rows));
        if (call >= 0) times[i].push_back(MicrosecondsSince(start));
      }
    }
    for (size_t i = 0; i < lanes.size(); ++i) {
      out.push_back({{"way", kWays[i].name},
                     {"rows", rows},
                     {"socket", address.rfind("unix:", 0) == 0 ? "unix" : "tcp"},
                     {"p10_us", Quantile(times[i], 0.1)},
                     {"p50_us", Quantile(times[i], 0.5)},
                     {"p10_over_bf16", Quantile(times[i], 0.1) / Quantile(times[0], 0.1)}});
    }
  }
  return out;
}

absl::Status Run(const Flags& flags) {
  nlohmann::json out = {{"hidden", flags.hidden}, {"calls", nlohmann::json::array()}};
  for (const std::string& address : flags.server) {
    AERIE_ASSIGN_OR_RETURN(const nlohmann::json calls, Compare(address, flags));
    out["calls"].insert(out["calls"].end(), calls.begin(), calls.end());
  }
  for (const int64_t rows : flags.rows) {
    const ArenaTimes times = MeasureArenas(rows, rows * flags.hidden * 3 * 2);
    out["arenas"].push_back({{"rows", rows}, {"heap_us", times.heap}, {"arena_us", times.arena}});
  }
  std::cout << out.dump(1) << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace aerie

int main(int argc, char** argv) {
  CLI::App app("Compares the ways in which rows may travel; prints JSON.", "aerie-wire-benchmark");
  aerie::Flags flags;
  CLI::Option* const serve = app.add_option(
      "--serve", flags.serve, "serve a drafter that computes nothing; write addresses there");
  CLI::Option* const server =
      app.add_option("--server", flags.server, "addresses of such a server")->delimiter(',');
  serve->excludes(server);
  app.add_option("--hidden", flags.hidden, "width of a capture; rows have three")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--rows", flags.rows, "rows of a call, one or more numbers")
      ->delimiter(',')
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  app.add_option("--calls", flags.calls, "of each kind with up to 64 rows")
      ->check(CLI::Range(10, 1000000))
      ->capture_default_str();
  app.add_option("--many-calls", flags.many_calls, "of each kind with more")
      ->check(CLI::Range(10, 1000000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (flags.serve.empty() && flags.server.empty()) {
    std::cerr << "aerie-wire-benchmark: neither --serve nor --server is given; expected one of "
                 "them; see --help\n";
    return 2;
  }
  const absl::Status status =
      flags.serve.empty()
          ? aerie::Run(flags)
          : aerie::ServeWire({.hidden_size = flags.hidden, .address_file = flags.serve});
  if (status.ok()) return 0;
  std::cerr << "aerie-wire-benchmark: " << std::string(status.message()) << "\n";
  return 1;
}
