#include "client/loadtest/recorded_workload.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace aerie::loadtest {
namespace {

class RecordedSequence : public Sequence {
 public:
  explicit RecordedSequence(const RecordedWorkload::Recorded* recorded) : recorded_(recorded) {}

  RowBatch Prompt() override {
    // The prompt and the first generated token are known: one row for each token but x_0.
    known_ = recorded_->prompt_tokens + 1;
    return Rows(0, known_ - 1);
  }

  Verdict Verify(const DraftTree& draft) override {
    const auto length = static_cast<int64_t>(recorded_->tokens.size());
    const int64_t first = known_;
    Verdict verdict;
    // Drafts past the recording's end cannot be judged and count as not accepted.
    verdict.accepted = draft.CountAccepted(
        absl::MakeConstSpan(recorded_->tokens).subspan(static_cast<size_t>(first)));
    known_ = std::min(length, first + verdict.accepted + 1);
    verdict.committed = Rows(first - 1, known_ - 1);
    verdict.finished = known_ == length;
    return verdict;
  }

  RowBatch Rows(int64_t first, int64_t last) override {
    return {absl::MakeConstSpan(recorded_->tokens)
                .subspan(static_cast<size_t>(first + 1), static_cast<size_t>(last - first)),
            recorded_->aux.Slice(first, last - first)};
  }

 private:
  const RecordedWorkload::Recorded* const recorded_;
  int64_t known_ = 0;  // committed tokens
};

}  // namespace

RecordedWorkload::RecordedWorkload(Manifest manifest, std::vector<Recorded> sequences,
                                   std::shared_ptr<const void> keeper)
    : manifest_(std::move(manifest)), sequences_(std::move(sequences)), keeper_(std::move(keeper)) {
  AERIE_CHECK(!sequences_.empty()) << "a recording without sequences";
}

std::unique_ptr<Sequence> RecordedWorkload::NewSequence(int64_t number) const {
  return std::make_unique<RecordedSequence>(&sequences_[static_cast<size_t>(number % size())]);
}

}  // namespace aerie::loadtest
