#include "client/loadtest/fault_injector.h"

#include <algorithm>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/loadtest/fault_session.h"
#include "client/loadtest/random.h"

namespace aerie::loadtest {
namespace {

// Streams of random numbers apart from those of sequences.
constexpr uint64_t kFaultStream = uint64_t{1} << 62;

using Codes = std::vector<absl::StatusCode>;

// How one fault went: the answer to the faulty call, or to the first other call that failed.
struct Outcome {
  absl::Status answer;
  bool as_expected = false;
  std::string expected;
};

Outcome Judged(absl::Status answer, const Codes& expected, const char* words) {
  const bool found = std::find(expected.begin(), expected.end(), answer.code()) != expected.end();
  return {std::move(answer), found, words};
}

// What follows a fault in its session: an ordinary call and the end, both of which must go well.
Outcome GoesOn(FaultSession& session, Outcome fault) {
  if (!fault.as_expected) return fault;
  for (absl::Status status : {session.Draft(), session.Close()}) {
    if (!status.ok()) return {std::move(status), false, "the session to go on behind the fault"};
  }
  return fault;
}

Outcome Cancel(FaultSession& session) {
  return GoesOn(session, Judged(session.DraftAndCancel(),
                                {absl::StatusCode::kOk, absl::StatusCode::kCancelled},
                                "CANCELLED, or OK when it was served before"));
}

Outcome Deadline(FaultSession& session, absl::Duration deadline) {
  return GoesOn(session, Judged(session.Draft(deadline),
                                {absl::StatusCode::kOk, absl::StatusCode::kDeadlineExceeded},
                                "DEADLINE_EXCEEDED, or OK when it was in time"));
}

Outcome SlowReader(FaultSession& session) {
  return Judged(session.StreamWithoutReading(), {absl::StatusCode::kOk},
                "all answers, however late they are read");
}

Outcome Reconnect(FaultSession& session) {
  absl::Status first = session.Draft();
  if (!first.ok()) return {std::move(first), false, "OK before the connection is dropped"};
  session.DropConnection();
  return GoesOn(session, {absl::OkStatus(), true, "the session to outlive its connection"});
}

Outcome Malformed(FaultSession& session, int64_t variant) {
  if (variant % 3 == 0) {
    // gRPC itself answers these two when it cannot parse a message.
    return GoesOn(session, Judged(session.SendGarbage(),
                                  {absl::StatusCode::kInvalidArgument, absl::StatusCode::kInternal,
                                   absl::StatusCode::kUnimplemented},
                                  "INVALID_ARGUMENT, INTERNAL or UNIMPLEMENTED: it is no message"));
  }
  return GoesOn(session, Judged(variant % 3 == 1 ? session.DraftWithMissingBytes()
                                                 : session.DraftWithForeignToken(),
                                {absl::StatusCode::kInvalidArgument}, "INVALID_ARGUMENT"));
}

}  // namespace

void FaultInjector::MaybeInject(int64_t session, int64_t round, absl::Mutex* mutex,
                                WholeStats* whole) {
  const FaultOptions& shares = options_.faults;
  Random random(options_.seed, kFaultStream + static_cast<uint64_t>(session) * 1'000'003 +
                                   static_cast<uint64_t>(round));
  const absl::Duration deadline = options_.fault_deadline;
  const std::tuple<const char*, double, std::function<Outcome(FaultSession&)>> kinds[] = {
      {"cancel", shares.cancel, Cancel},
      {"deadline", shares.deadline, [deadline](FaultSession& s) { return Deadline(s, deadline); }},
      {"slow_reader", shares.slow_reader, SlowReader},
      {"reconnect", shares.reconnect, Reconnect},
      {"malformed", shares.malformed,
       [&](FaultSession& s) { return Malformed(s, session + round); }}};
  for (const auto& [kind, share, inject] : kinds) {
    if (!(random.Uniform() < share)) continue;
    FaultSession at(options_, *workload_, session);
    absl::Status opened = at.Open();
    // A full server is no fault of the fault's.
    const bool full = absl::IsResourceExhausted(opened);
    const Outcome outcome =
        opened.ok() ? inject(at) : Outcome{std::move(opened), full, "a session to be opened"};
    if (!outcome.as_expected) at.Close().IgnoreError();
    absl::MutexLock lock(mutex);
    FaultTally& tally = whole->faults[kind];
    ++tally.injected;
    tally.as_expected += outcome.as_expected ? 1 : 0;
    ++tally.by_code[absl::StatusCodeToString(outcome.answer.code())];
    if (!outcome.as_expected && tally.first_surprise.empty()) {
      tally.first_surprise =
          absl::StrCat("seen ", outcome.answer.ToString(), "; expected ", outcome.expected);
    }
    whole->unsure.Merge(at.counts());
  }
}

}  // namespace aerie::loadtest
