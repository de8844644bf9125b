#include "client/acceptance.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/check.h"

namespace aerie {
namespace {

double Ratio(int64_t numerator, int64_t denominator) {
  return denominator == 0 ? 0.0 : static_cast<double>(numerator) / static_cast<double>(denominator);
}

void AddInto(const std::vector<int64_t>& from, std::vector<int64_t>* into) {
  if (into->size() < from.size()) into->resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) (*into)[i] += from[i];
}

}  // namespace

absl::StatusOr<ChainVerdict> VerifyGreedyChain(absl::Span<const int32_t> draft,
                                               absl::Span<const int32_t> argmax) {
  if (argmax.size() != draft.size() + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the target gave ", argmax.size(), " choices for a chain of ", draft.size(),
                     " tokens, but it must give one behind the root and one behind every token; "
                     "run it over the root and the whole chain"));
  }
  const auto difference = std::mismatch(draft.begin(), draft.end(), argmax.begin()).first;
  ChainVerdict verdict;
  verdict.accepted = static_cast<int32_t>(difference - draft.begin());
  verdict.bonus = argmax[verdict.accepted];
  verdict.tokens.assign(draft.begin(), difference);
  verdict.tokens.push_back(verdict.bonus);
  return verdict;
}

void AcceptanceTally::Add(int32_t proposed, int32_t depth, int32_t accepted) {
  AERIE_CHECK(depth >= 1 && depth <= proposed && accepted >= 0 && accepted <= depth)
      << "accepted " << accepted << " of " << depth << " levels, " << proposed << " tokens";
  ++drafts_;
  draft_tokens_ += proposed;
  accepted_tokens_ += accepted;
  if (proposed_at_.size() < static_cast<size_t>(depth)) {
    proposed_at_.resize(depth);
    accepted_at_.resize(depth);
  }
  for (int32_t i = 0; i < depth; ++i) ++proposed_at_[i];
  for (int32_t i = 0; i < accepted; ++i) ++accepted_at_[i];
}

void AcceptanceTally::Merge(const AcceptanceTally& other) {
  drafts_ += other.drafts_;
  draft_tokens_ += other.draft_tokens_;
  accepted_tokens_ += other.accepted_tokens_;
  AddInto(other.accepted_at_, &accepted_at_);
  AddInto(other.proposed_at_, &proposed_at_);
}

double AcceptanceTally::MeanAcceptLength() const {
  return drafts_ == 0 ? 0.0 : 1.0 + Ratio(accepted_tokens_, drafts_);
}

double AcceptanceTally::AcceptanceRate() const { return Ratio(accepted_tokens_, draft_tokens_); }

std::vector<double> AcceptanceTally::RateByPosition() const {
  std::vector<double> rates;
  for (size_t i = 0; i < proposed_at_.size(); ++i) {
    rates.push_back(Ratio(accepted_at_[i], proposed_at_[i]));
  }
  return rates;
}

std::vector<double> AcceptanceTally::ConditionalRateByPosition() const {
  std::vector<double> rates;
  for (size_t i = 0; i < accepted_at_.size(); ++i) {
    rates.push_back(Ratio(accepted_at_[i], i == 0 ? drafts_ : accepted_at_[i - 1]));
  }
  return rates;
}

}  // namespace aerie
