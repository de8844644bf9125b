// aerie-rpc-benchmark: what a Draft call takes beside its computation, against a call of the same
// size to a server that computes nothing. Prints JSON.
//
//   aerie-rpc-benchmark --serve-echo FILE         serves echoes until stdin ends; FILE: its
//   addresses aerie-rpc-benchmark --server A,B --echo A,B   the same number of addresses of both,
//   in order
//
// What a reader would get wrong: both are asked in turns, and what is compared are medians: other
// programs only ever add to a time. "Computation" is what the server says of itself: its passes.
// `inside` is the rest of what it says, from the request's arrival to the reply; what is left is
// gRPC's and the system's. `echo_behind_work` is an echo whose server reads memory for as long as
// the computation took, less that time: what a call costs once its caches were used for something
// else. These are asked in turns of their own: their memory beside the weights would leave the
// draft server colder than its own work does.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "tests/benchmarks/echo_service.h"

namespace aerie {
namespace {

using Clock = std::chrono::steady_clock;

struct Flags {
  std::string serve_echo;
  std::vector<std::string> server, echo;
  int32_t calls = 2000, warmup = 200;
  int32_t rows = 2, k = 3;
};

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double Microseconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) * 1e6 +
         static_cast<double>(duration.nanos()) * 1e-3;
}

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

absl::Status StatusOf(const grpc::Status& status, const char* doing) {
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(doing, " failed: ", status.error_message(),
                                             "; expected an answer; see the server's log"));
}

// One way to a server: unary calls or a stream.
class Caller {
 public:
  Caller(const std::string& address, bool stream)
      : stub_(v1::DraftService::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    if (stream) stream_ = stub_->DraftStream(&context_);
  }
  ~Caller() {
    if (stream_ == nullptr) return;
    stream_->WritesDone();
    v1::DraftStreamResponse rest;
    while (stream_->Read(&rest)) {
    }
    stream_->Finish();
  }

  absl::StatusOr<std::string> Open(const v1::Manifest& manifest) {
    if (stream_ != nullptr) {
      request_.Clear();
      *request_.mutable_open_session()->mutable_manifest() = manifest;
      AERIE_RETURN_IF_ERROR(Exchange());
      return response_.open_session().session_id();
    }
    v1::OpenSessionRequest request;
    *request.mutable_manifest() = manifest;
    v1::OpenSessionResponse response;
    grpc::ClientContext context;
    AERIE_RETURN_IF_ERROR(
        StatusOf(stub_->OpenSession(&context, request, &response), "OpenSession"));
    return response.session_id();
  }

  absl::Status Draft(const v1::DraftRequest& request, v1::DraftResponse* response) {
    if (stream_ != nullptr) {
      *request_.mutable_draft() = request;
      AERIE_RETURN_IF_ERROR(Exchange());
      *response = response_.draft();
      return absl::OkStatus();
    }
    grpc::ClientContext context;
    return StatusOf(stub_->Draft(&context, request, response), "Draft");
  }

  absl::StatusOr<v1::GetServerInfoResponse> Info() {
    v1::GetServerInfoResponse response;
    grpc::ClientContext context;
    AERIE_RETURN_IF_ERROR(StatusOf(stub_->GetServerInfo(&context, {}, &response), "GetServerInfo"));
    return response;
  }

 private:
  absl::Status Exchange() {
    request_.set_id(++id_);
    if (!stream_->Write(request_) || !stream_->Read(&response_) || response_.has_error()) {
      return absl::UnavailableError(absl::StrCat("the stream failed: ", response_.error().message(),
                                                 "; expected an answer; see the server's log"));
    }
    return absl::OkStatus();
  }

  std::unique_ptr<v1::DraftService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::DraftStreamRequest, v1::DraftStreamResponse>>
      stream_;
  v1::DraftStreamRequest request_;
  v1::DraftStreamResponse response_;
  uint64_t id_ = 0;
};

// Calls that follow each other before the other kind's turn comes.
constexpr int32_t kTurn = 100;

struct Session {
  v1::DraftRequest round;  // rows behind the prompt; each call replaces those of the last
  int64_t row_bytes = 0;
};

// A session with a prompt of 64 rows on `caller`.
absl::StatusOr<Session> OpenSession(Caller& caller, const Flags& flags) {
  AERIE_ASSIGN_OR_RETURN(const v1::GetServerInfoResponse info, caller.Info());
  const v1::DrafterInfo& drafter = info.drafters(0);
  v1::Manifest manifest;
  manifest.set_target_id("benchmark");
  manifest.set_num_layers(drafter.target_num_layers());
  manifest.set_hidden_size(drafter.target_hidden_size());
  manifest.set_vocab_size(drafter.vocab_size());
  *manifest.mutable_captures() = drafter.captures();
  manifest.set_dtype(v1::DATA_TYPE_BFLOAT16);
  Session session;
  AERIE_ASSIGN_OR_RETURN(const std::string id, caller.Open(manifest));
  session.row_bytes = int64_t{2} * drafter.captures_size() * drafter.target_hidden_size();
  constexpr uint32_t kPrompt = 64;
  v1::DraftRequest& round = session.round;
  round.set_session_id(id);
  // 0x3f00 is 0.5.
  const auto fill = [&](int64_t rows) {
    round.clear_token_ids();
    for (int64_t i = 0; i < rows; ++i) round.add_token_ids(static_cast<uint32_t>(i % 90 + 5));
    std::string bytes(rows * session.row_bytes, '\0');
    for (size_t i = 1; i < bytes.size(); i += 2) bytes[i] = i % 8 == 1 ? '\x3f' : '\xbf';
    round.mutable_hidden_states()->set_dtype(v1::DATA_TYPE_BFLOAT16);
    round.mutable_hidden_states()->set_data(std::move(bytes));
  };
  fill(kPrompt);
  v1::DraftResponse response;
  AERIE_RETURN_IF_ERROR(caller.Draft(round, &response));
  fill(flags.rows);
  round.set_base_length(kPrompt);
  round.set_k(flags.k);
  return session;
}

// Microseconds, an entry a call.
struct Times {
  std::vector<double> round, beside, inside, queue, echo, echo_behind_work;
};

// A draft and an echo, `turns` times.
absl::Status TakeTurns(Caller& real, Caller& empty, const v1::DraftRequest& round, int32_t turns,
                       Times* times) {
  v1::DraftResponse response;
  for (int32_t i = 0; i < turns; ++i) {
    Clock::time_point start = Clock::now();
    AERIE_RETURN_IF_ERROR(real.Draft(round, &response));
    const double whole = MicrosecondsSince(start);
    const double computed =
        Microseconds(response.timing().extend()) + Microseconds(response.timing().step());
    times->round.push_back(whole);
    times->beside.push_back(whole - computed);
    times->inside.push_back(Microseconds(response.timing().total()) - computed);
    times->queue.push_back(Microseconds(response.timing().queue()));
    start = Clock::now();
    AERIE_RETURN_IF_ERROR(empty.Draft(round, &response));
    times->echo.push_back(MicrosecondsSince(start));
  }
  return absl::OkStatus();
}

// Echoes behind `work` microseconds of reading memory.
absl::Status EchoBehindWork(Caller& empty, v1::DraftRequest round, double work, int32_t calls,
                            Times* times) {
  v1::DraftResponse response;
  round.mutable_verify_cost()->mutable_time()->set_nanos(static_cast<int32_t>(work * 1e3));
  for (int32_t i = 0; i < calls; ++i) {
    const Clock::time_point start = Clock::now();
    AERIE_RETURN_IF_ERROR(empty.Draft(round, &response));
    times->echo_behind_work.push_back(MicrosecondsSince(start) - work);
  }
  return absl::OkStatus();
}

absl::StatusOr<nlohmann::json> Compare(const std::string& server, const std::string& echo,
                                       bool stream, const Flags& flags) {
  Caller real(server, stream), empty(echo, stream);
  AERIE_ASSIGN_OR_RETURN(const Session session, OpenSession(real, flags));
  Times warmup, times;
  AERIE_RETURN_IF_ERROR(TakeTurns(real, empty, session.round, flags.warmup, &warmup));
  const double work = Quantile(warmup.round, 0.5) - Quantile(warmup.beside, 0.5);
  for (int32_t done = 0; done < flags.calls; done += kTurn) {
    const int32_t turns = std::min(kTurn, flags.calls - done);
    AERIE_RETURN_IF_ERROR(TakeTurns(real, empty, session.round, turns, &times));
    AERIE_RETURN_IF_ERROR(EchoBehindWork(empty, session.round, work, turns, &times));
  }
  nlohmann::json out = {{"transport", stream ? "stream" : "unary"},
                        {"socket", server.rfind("unix:", 0) == 0 ? "unix" : "tcp"},
                        {"calls", flags.calls},
                        {"request_bytes", session.round.ByteSizeLong()}};
  for (const auto& [name, share] : {std::pair{"p10", 0.1}, {"p50", 0.5}, {"p99", 0.99}}) {
    out["round_us"][name] = Quantile(times.round, share);
    out["minus_compute_us"][name] = Quantile(times.beside, share);
    out["inside_us"][name] = Quantile(times.inside, share);
    out["queue_us"][name] = Quantile(times.queue, share);
    out["echo_us"][name] = Quantile(times.echo, share);
    out["echo_behind_work_us"][name] = Quantile(times.echo_behind_work, share);
  }
  out["ratio_behind_work_p50"] =
      Quantile(times.beside, 0.5) / Quantile(times.echo_behind_work, 0.5);
  out["ratio_p10"] = Quantile(times.beside, 0.1) / Quantile(times.echo, 0.1);
  out["ratio_p50"] = Quantile(times.beside, 0.5) / Quantile(times.echo, 0.5);
  return out;
}

// Rounds that begin at fixed times, twice as far apart as a round takes when nothing waits. A round
// that begins late counts from when it should have begun.
absl::StatusOr<nlohmann::json> HalfLoad(const std::string& server, const Flags& flags) {
  Caller real(server, /*stream=*/true);
  AERIE_ASSIGN_OR_RETURN(const Session session, OpenSession(real, flags));
  v1::DraftResponse response;
  std::vector<double> alone, loaded;
  for (int32_t i = 0; i < flags.warmup; ++i) {
    const Clock::time_point start = Clock::now();
    AERIE_RETURN_IF_ERROR(real.Draft(session.round, &response));
    alone.push_back(MicrosecondsSince(start));
  }
  const auto period = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double, std::micro>(2.0 * Quantile(alone, 0.5)));
  Clock::time_point due = Clock::now();
  for (int32_t i = 0; i < flags.calls; ++i) {
    due += period;
    std::this_thread::sleep_until(due);
    AERIE_RETURN_IF_ERROR(real.Draft(session.round, &response));
    loaded.push_back(MicrosecondsSince(due));
  }
  return nlohmann::json{{"period_us", 2.0 * Quantile(alone, 0.5)},
                        {"p50_us", Quantile(loaded, 0.5)},
                        {"p99_us", Quantile(loaded, 0.99)},
                        {"p99_over_p50", Quantile(loaded, 0.99) / Quantile(loaded, 0.5)}};
}

absl::Status Run(const Flags& flags) {
  nlohmann::json out = {{"rows", flags.rows}, {"k", flags.k}};
  for (size_t i = 0; i < flags.server.size(); ++i) {
    for (const bool stream : {false, true}) {
      AERIE_ASSIGN_OR_RETURN(nlohmann::json entry,
                             Compare(flags.server[i], flags.echo[i], stream, flags));
      out["calls"].push_back(std::move(entry));
    }
  }
  AERIE_ASSIGN_OR_RETURN(out["half_load"], HalfLoad(flags.server[0], flags));
  std::cout << out.dump(1) << std::endl;
  return absl::OkStatus();
}

absl::Status ServeEcho(const std::string& path) {
  EchoService service;
  grpc::ServerBuilder builder;
  int port = 0;
  const std::string socket = absl::StrCat("unix:", path, ".sock");
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.AddListeningPort(socket, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", socket, "; expected a place for a socket; name another file"));
  }
  std::ofstream(path) << "127.0.0.1:" << port << "," << socket << "\n";
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace aerie

int main(int argc, char** argv) {
  CLI::App app("Compares Draft calls with echoes of their size; prints JSON.",
               "aerie-rpc-benchmark");
  aerie::Flags flags;
  CLI::Option* const serve = app.add_option("--serve-echo", flags.serve_echo,
                                            "serve echoes until stdin ends; write addresses there");
  CLI::Option* const server =
      app.add_option("--server", flags.server, "addresses of a draft server")->delimiter(',');
  CLI::Option* const echo =
      app.add_option("--echo", flags.echo, "as many of an echo server")->delimiter(',');
  server->needs(echo);
  serve->excludes(server);
  app.add_option("--calls", flags.calls, "of each kind")
      ->check(CLI::Range(10, 1000000))
      ->capture_default_str();
  app.add_option("--rows", flags.rows, "that a call brings")
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  app.add_option("--k", flags.k, "tokens to draft")
      ->check(CLI::Range(1, 128))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (flags.serve_echo.empty() &&
      (flags.server.empty() || flags.server.size() != flags.echo.size())) {
    std::cerr << "aerie-rpc-benchmark: --server names " << flags.server.size()
              << " addresses and --echo " << flags.echo.size()
              << "; expected as many of both, at least one; see --help\n";
    return 2;
  }
  const absl::Status status =
      flags.serve_echo.empty() ? aerie::Run(flags) : aerie::ServeEcho(flags.serve_echo);
  if (status.ok()) return 0;
  std::cerr << "aerie-rpc-benchmark: " << std::string(status.message()) << "\n";
  return 1;
}
