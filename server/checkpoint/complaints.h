// All that is wrong with a set of files, so that whoever mends them need not start the server once
// per fault.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace aerie {

class Complaints {
 public:
  // `complaint`: what was seen, what was expected, what to do. It stops the load. One that is there
  // already is not told twice.
  void Add(std::string complaint);
  // The same of something odd that changes no result: it is told, and the load goes on.
  void Warn(std::string warning);

  bool empty() const { return complaints_.empty(); }
  const std::vector<std::string>& list() const { return complaints_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  // OK when nothing stops the load, else FAILED_PRECONDITION with all that does, numbered when
  // there are several. `subject` opens the message: "drafter /models/head".
  absl::Status ToStatus(absl::string_view subject) const;

 private:
  std::vector<std::string> complaints_;
  std::vector<std::string> warnings_;
};

}  // namespace aerie
