// Lends the gRPC thread that has just read a call of few rows to the call's engine.
//
// The engine then need not wake its own thread, which takes longer than much else of such a call.
// What a reader would get wrong: gRPC has as few as two threads that read, so one at most is lent
// in the whole process, and for a short time: long calls are not worth it, and an engine gives the
// thread back as soon as others call.
#pragma once

#include <cstdint>

#include "server/engine/draft_call.h"
#include "server/transport/served_drafter.h"

namespace aerie {

// One thread, from reading calls to returning to gRPC.
class ThreadLoan {
 public:
  // `rows`: that the calls bring, all together.
  explicit ThreadLoan(int64_t rows);
  // Computes what was handed on, unless somebody else does.
  ~ThreadLoan();
  ThreadLoan(const ThreadLoan&) = delete;
  ThreadLoan& operator=(const ThreadLoan&) = delete;

  // As DraftEngine::Draft(). The answer may be given on this thread, when the loan ends.
  void Draft(const ServedDrafterPtr& drafter, DraftCall call, DraftDone done);

 private:
  const bool granted_;
  ServedDrafterPtr drafter_;  // whose calls were handed on and wake nobody; null: none
};

}  // namespace aerie
