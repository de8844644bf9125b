#include "common/draft_tree.h"

#include "absl/strings/str_cat.h"

namespace aerie {

void DraftTree::AppendToChain(int32_t token, float log_prob) {
  parents.push_back(size());
  tokens.push_back(token);
  log_probs.push_back(log_prob);
}

absl::Status DraftTree::Validate() const {
  if (parents.size() != tokens.size() || log_probs.size() != tokens.size()) {
    return absl::InternalError(absl::StrCat("a draft tree has ", tokens.size(), " tokens, ",
                                            parents.size(), " parents and ", log_probs.size(),
                                            " log-probabilities; expected equal counts"));
  }
  for (size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] < 0 || parents[i] > static_cast<int32_t>(i)) {
      return absl::InternalError(absl::StrCat("node ", i + 1, " of a draft tree has parent ",
                                              parents[i], "; expected 0..", i,
                                              ": parents precede children"));
    }
  }
  return absl::OkStatus();
}

int32_t DraftTree::CountAccepted(absl::Span<const int32_t> continuation) const {
  // Parents precede children, so one scan finds each next node of the path. Among siblings with the
  // same token the first one is followed.
  int32_t node = 0;
  int32_t accepted = 0;
  for (size_t i = 0; i < tokens.size() && accepted < static_cast<int32_t>(continuation.size());
       ++i) {
    if (parents[i] == node && tokens[i] == continuation[static_cast<size_t>(accepted)]) {
      node = static_cast<int32_t>(i) + 1;
      ++accepted;
    }
  }
  return accepted;
}

}  // namespace aerie
