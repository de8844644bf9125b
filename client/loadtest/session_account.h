// What the server has to have counted of one session, kept while the session runs and compared with
// the server's own record at its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/draft_call.h"
#include "client/loadtest/stats.h"
#include "client/loadtest/workload.h"
#include "common/acceptance_record.h"

namespace aerie::loadtest {

// One thread.
class SessionAccount {
 public:
  // One call that brought `rows`, up to row `length` of the session.
  void Add(const DraftOutcome& outcome, const Verdict& verdict, const HiddenRows& rows,
           int64_t length);
  // At the session's end. `record` is null, or the session `failed`: what the server counted of it
  // cannot be known.
  void Settle(const std::string& id, const AcceptanceRecord* record, bool failed,
              WholeStats* whole);

  // Rows went a second time, so the server may have counted them twice.
  bool resent() const { return resent_; }

 private:
  void Compare(const std::string& id, const AcceptanceRecord& record, WholeStats* whole) const;
  void CountVariety(WholeStats* whole) const;

  SureCounts sure_;
  UnsureCounts unsure_;
  std::vector<int32_t> output_;
  bool resent_ = false;
};

}  // namespace aerie::loadtest
