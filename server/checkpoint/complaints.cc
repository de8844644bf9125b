#include "server/checkpoint/complaints.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace aerie {
namespace {

void AddOnce(std::string text, std::vector<std::string>& list) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

}  // namespace

void Complaints::Add(std::string complaint) { AddOnce(std::move(complaint), complaints_); }

void Complaints::Warn(std::string warning) { AddOnce(std::move(warning), warnings_); }

absl::Status Complaints::ToStatus(absl::string_view subject) const {
  if (complaints_.empty()) return absl::OkStatus();
  if (complaints_.size() == 1) {
    return absl::FailedPreconditionError(absl::StrCat(subject, ": ", complaints_[0]));
  }
  std::string message = absl::StrCat(subject, ": ", complaints_.size(), " things are wrong");
  for (size_t i = 0; i < complaints_.size(); ++i) {
    absl::StrAppend(&message, "\n  ", i + 1, ". ", complaints_[i]);
  }
  return absl::FailedPreconditionError(message);
}

}  // namespace aerie
