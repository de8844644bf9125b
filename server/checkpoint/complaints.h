// All that is wrong with a set of files, so that whoever mends them need not start the server once
// per fault.
#pragma once

#include <string>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/status/status.h"

namespace aerie {

class Complaints {
 public:
  // `complaint`: what was seen, what was expected, what to do.
  void Add(std::string complaint) { complaints_.push_back(std::move(complaint)); }
  bool empty() const { return complaints_.empty(); }
  const std::vector<std::string>& list() const { return complaints_; }

  // OK when there is none, else FAILED_PRECONDITION with all of them, numbered when there are
  // several. `subject` opens the message: "drafter /models/head".
  absl::Status ToStatus(absl::string_view subject) const;

 private:
  std::vector<std::string> complaints_;
};

}  // namespace aerie
