#include "tests/benchmarks/arena_times.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "aerie/v1/draft.pb.h"
#include "google/protobuf/arena.h"

namespace aerie {
namespace {

double Least(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  double least = 1e300;
  for (int run = 0; run < 200; ++run) {
    const Clock::time_point start = Clock::now();
    work();
    const std::chrono::duration<double, std::micro> took = Clock::now() - start;
    least = std::min(least, took.count());
  }
  return least;
}

v1::DraftRequest Request(int64_t rows, int64_t bytes) {
  v1::DraftRequest request;
  request.set_session_id(std::string(36, 's'));
  for (int64_t i = 0; i < rows; ++i) request.add_token_ids(static_cast<uint32_t>(i));
  request.mutable_hidden_states()->set_data(std::string(static_cast<size_t>(bytes), 'x'));
  request.mutable_time_limit()->set_seconds(1);
  request.mutable_verify_cost()->mutable_time()->set_nanos(1);
  return request;
}

// As the service fills one for a chain of four.
void Fill(v1::DraftResponse* answer) {
  for (uint32_t i = 0; i < 4; ++i) {
    answer->mutable_tree()->add_token_ids(i);
    answer->mutable_tree()->add_parents(i);
    answer->mutable_tree()->add_log_probs(-1.0f);
    answer->mutable_tree()->add_positions(i);
  }
  v1::DraftTiming& timing = *answer->mutable_timing();
  for (google::protobuf::Duration* const part : {timing.mutable_queue(), timing.mutable_extend(),
                                                 timing.mutable_step(), timing.mutable_total()}) {
    part->set_nanos(1000);
  }
}

}  // namespace

ArenaTimes MeasureArenas(int64_t rows, int64_t row_bytes_in_all) {
  const std::string bytes = Request(rows, row_bytes_in_all).SerializeAsString();
  std::string written;
  const auto serve = [&](v1::DraftRequest* request, v1::DraftResponse* answer) {
    if (!request->ParseFromString(bytes)) return;
    Fill(answer);
    answer->SerializeToString(&written);
  };
  ArenaTimes times;
  times.heap = Least([&] {
    v1::DraftRequest request;
    v1::DraftResponse answer;
    serve(&request, &answer);
  });
  times.arena = Least([&] {
    google::protobuf::Arena arena;
    serve(google::protobuf::Arena::CreateMessage<v1::DraftRequest>(&arena),
          google::protobuf::Arena::CreateMessage<v1::DraftResponse>(&arena));
  });
  return times;
}

}  // namespace aerie
