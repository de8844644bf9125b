#include "client/admin/admin_line.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/rpc/channel.h"

namespace aerie::admin {

Line::Line(const std::string& address, const char* flag, const AdminOptions& options)
    : address_(address),
      flag_(flag),
      deadline_(absl::Now() + options.timeout),
      channel_(rpc::OpenChannel(address, options.secrets)) {
  context_.set_deadline(absl::ToChronoTime(deadline_));
}

Outcome Line::Failed(const absl::Status& status) const {
  std::string hint = absl::StrCat("; expected an aerie-server there; compare ", flag_);
  if (absl::IsUnimplemented(status)) {
    hint = absl::StrCat(
        "; expected a listener with that service: drafting and administration have one each; "
        "compare ",
        flag_, " with the server's --listen and --admin-listen");
  } else if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
    hint.clear();  // the server's own words say what to do
  }
  return {.code = kNotAsked,
          .out = "",
          .err = absl::StrCat("the server at ", address_, " gave no answer: ", status.message(),
                              hint, "\n")};
}

}  // namespace aerie::admin
