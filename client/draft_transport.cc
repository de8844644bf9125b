#include "client/draft_transport.h"

#include "common/error_detail.h"

namespace aerie {

absl::Status DeadlinePassed() {
  return WithReason(
      absl::DeadlineExceededError("no answer from the draft server by the call's deadline; "
                                  "expected one in time; decode this round without a draft"),
      kReasonDeadline);
}

}  // namespace aerie
