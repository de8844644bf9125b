#include "server/transport/call_rows.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/error_detail.h"
#include "common/status_macros.h"

namespace aerie {

absl::StatusOr<rpc::DecodedStates> ReadRows(const v1::HiddenStates& states, int64_t rows,
                                            int64_t width, const SharedMemoryAccess& shared) {
  if (!states.has_shared()) return rpc::DecodeHiddenStates(states, rows, width);
  if (!states.data().empty()) {
    return WithReason(
        absl::InvalidArgumentError(absl::StrCat(
            "hidden_states has ", states.data().size(),
            " bytes of data and rows in shared memory; expected one of them; leave data empty")),
        kReasonRequestInvalid);
  }
  AERIE_ASSIGN_OR_RETURN(SharedBytes bytes, shared.Read(states.shared()));
  AERIE_ASSIGN_OR_RETURN(rpc::DecodedStates decoded,
                         rpc::DecodeHiddenStates(states, bytes.bytes, rows, width));
  if (decoded.owner == nullptr) decoded.owner = std::move(bytes.owner);
  return decoded;
}

}  // namespace aerie
