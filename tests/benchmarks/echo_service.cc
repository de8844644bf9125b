#include "tests/benchmarks/echo_service.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace aerie {
namespace {

// Reads memory over and over, as much as a drafter's weights, until the time that the request names
// is over: caches are then as a draft step leaves them.
void Work(const v1::DraftRequest& request) {
  static const std::vector<char> weights(size_t{16} << 20, 'w');
  constexpr size_t kLine = 64, kPiece = size_t{64} << 10;
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::nanoseconds(request.verify_cost().time().nanos());
  static std::atomic<unsigned> sum = 0;  // so that no reading is left out
  for (size_t at = 0; std::chrono::steady_clock::now() < end; at = (at + kPiece) % weights.size()) {
    unsigned piece = 0;
    for (size_t i = at; i < at + kPiece; i += kLine)
      piece += static_cast<unsigned char>(weights[i]);
    sum.fetch_add(piece, std::memory_order_relaxed);
  }
}

// A chain of the k that was asked for, with all that a greedy one carries.
void FillAnswer(const v1::DraftRequest& request, v1::DraftResponse* response) {
  response->set_seq(request.seq());
  response->set_length(request.base_length() + request.token_ids_size());
  response->set_method(v1::PROPOSAL_METHOD_GREEDY_CHAIN);
  response->set_accepted(1);
  for (uint32_t i = 0; i < request.k(); ++i) {
    response->mutable_tree()->add_token_ids(20000 + i);
    response->mutable_tree()->add_parents(i);
    response->mutable_tree()->add_log_probs(-1.5f);
    response->mutable_tree()->add_positions(response->length() + 1 + i);
  }
  v1::DraftTiming& timing = *response->mutable_timing();
  for (google::protobuf::Duration* const part : {timing.mutable_queue(), timing.mutable_extend(),
                                                 timing.mutable_step(), timing.mutable_total()})
    part->set_nanos(1000000);
}

class EchoStream final
    : public grpc::ServerBidiReactor<v1::DraftStreamRequest, v1::DraftStreamResponse> {
 public:
  EchoStream() { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    Work(request_.draft());
    response_.Clear();
    response_.set_id(request_.id());
    FillAnswer(request_.draft(), response_.mutable_draft());
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  v1::DraftStreamRequest request_;
  v1::DraftStreamResponse response_;
};

}  // namespace

grpc::ServerUnaryReactor* EchoService::Draft(grpc::CallbackServerContext* context,
                                             const v1::DraftRequest* request,
                                             v1::DraftResponse* response) {
  Work(*request);
  FillAnswer(*request, response);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerBidiReactor<v1::DraftStreamRequest, v1::DraftStreamResponse>* EchoService::DraftStream(
    grpc::CallbackServerContext*) {
  return new EchoStream();
}

}  // namespace aerie
