// Plain calls to a null server: what gRPC itself costs a round, to hold the load tester's cost
// against. loadtest-echo ADDRESS [CALLS]: prints calls a second and CPU a call, of one thread.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/time/clock.h"
#include "aerie/v1/draft.grpc.pb.h"
#include "client/loadtest/cpu_time.h"

namespace aerie::loadtest {
namespace {

// A round that keeps two tokens of four: three rows of 192 numbers of 16 bits.
constexpr size_t kRowBytes = 192 * 2;

int Main(const std::string& address, int calls) {
  const auto stub =
      v1::DraftService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  v1::OpenSessionResponse opened;
  {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    const grpc::Status status = stub->OpenSession(&context, {}, &opened);
    if (!status.ok()) {
      std::fprintf(stderr, "loadtest-echo: %s: %s; expected aerie-load null-server there\n",
                   address.c_str(), status.error_message().c_str());
      return 1;
    }
  }
  v1::DraftRequest request;
  request.set_session_id(opened.session_id());
  for (const uint32_t token : {1, 2, 9}) request.add_token_ids(token);
  request.mutable_hidden_states()->set_dtype(v1::DATA_TYPE_BFLOAT16);
  request.mutable_hidden_states()->set_data(std::string(3 * kRowBytes, '\1'));
  request.set_k(4);
  const CpuTimes before = ReadCpuTimes();
  const absl::Time start = absl::Now();
  for (int i = 0; i < calls; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::DraftResponse response;
    if (!stub->Draft(&context, request, &response).ok()) return 1;
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  const double cpu = absl::ToDoubleSeconds(ReadCpuTimes().own - before.own);
  std::printf("%.0f calls a second, %.1f us of CPU a call: %.0f calls a second a core\n",
              calls / seconds, 1e6 * cpu / calls, calls / cpu);
  return 0;
}

}  // namespace
}  // namespace aerie::loadtest

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: loadtest-echo ADDRESS [CALLS]\n", stderr);
    return 2;
  }
  return aerie::loadtest::Main(argv[1], argc > 2 ? std::atoi(argv[2]) : 20000);
}
