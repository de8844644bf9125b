#include "server/guard/replay.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/check.h"

namespace aerie {
namespace {

constexpr int32_t kAllOrdersUpTo = 4;
constexpr size_t kWindowsKept = 8, kWindowsNeeded = 3;
// Nats a row. Orders that the head hardly tells apart differ by less, honest rows lose 2 and more.
constexpr double kLeastGain = 0.3;

}  // namespace

bool CaptureOrder::AsSent() const { return std::is_sorted(captures.begin(), captures.end()); }

std::string CaptureOrder::ToString() const {
  return AsSent() ? "as sent" : absl::StrCat("in the order ", absl::StrJoin(captures, ", "));
}

std::vector<CaptureOrder> CandidateOrders(int32_t captures) {
  AERIE_CHECK(captures > 0) << captures;
  std::vector<int32_t> order(static_cast<size_t>(captures));
  std::iota(order.begin(), order.end(), 0);
  std::vector<CaptureOrder> orders;
  if (captures <= kAllOrdersUpTo) {
    do {
      orders.push_back({order});
    } while (std::next_permutation(order.begin(), order.end()));
    return orders;
  }
  orders.push_back({order});
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = i + 1; j < order.size(); ++j) {
      orders.push_back({order});
      std::swap(orders.back().captures[i], orders.back().captures[j]);
    }
  }
  return orders;
}

std::string ReplayRequest::Reordered(const CaptureOrder& order) const {
  const auto captures = order.captures.size();
  const size_t part = static_cast<size_t>(width) * DTypeSize(dtype) / captures;
  std::string reordered(bytes.size(), '\0');
  for (size_t row = 0; row < tokens.size(); ++row) {
    const size_t at = row * part * captures;
    for (size_t i = 0; i < captures; ++i) {
      std::memcpy(reordered.data() + at + i * part,
                  bytes.data() + at + static_cast<size_t>(order.captures[i]) * part, part);
    }
  }
  return reordered;
}

HiddenRows ReplayRequest::View(const std::string& reordered) const {
  absl::StatusOr<HiddenRows> rows =
      HiddenRows::Create(dtype, static_cast<int64_t>(tokens.size()), width, reordered);
  AERIE_CHECK(rows.ok()) << rows.status().message();
  return *rows;
}

void ReplayEvidence::Add(const ReplayScores& scores) {
  AERIE_CHECK(scores.log_probs.size() == orders_.size()) << scores.log_probs.size();
  const std::vector<float>& sent = scores.log_probs.front();
  std::vector<double> gains;
  for (const std::vector<float>& tried : scores.log_probs) {
    AERIE_CHECK(tried.size() == sent.size()) << tried.size() << " and " << sent.size();
    double gain = 0.0;
    int64_t rows = 0;
    for (size_t i = 0; i < sent.size(); ++i) {
      if (!std::isfinite(sent[i]) || !std::isfinite(tried[i])) continue;
      gain += double{tried[i]} - sent[i];
      ++rows;
    }
    gains.push_back(rows == 0 ? 0.0 : gain / static_cast<double>(rows));
  }
  gains_.push_back(std::move(gains));
  if (gains_.size() > kWindowsKept) gains_.erase(gains_.begin());
}

double ReplayEvidence::MeanGain(size_t order) const {
  double sum = 0.0;
  for (const std::vector<double>& window : gains_) sum += window[order];
  return gains_.empty() ? 0.0 : sum / static_cast<double>(gains_.size());
}

size_t ReplayEvidence::Best() const {
  size_t best = 0;
  for (size_t i = 1; i < orders_.size(); ++i) {
    if (MeanGain(i) > MeanGain(best)) best = i;
  }
  return best;
}

ReplayReport ReplayEvidence::Report() const {
  const size_t best = Best();
  return {.answered = static_cast<int64_t>(gains_.size()),
          .best = orders_[best].ToString(),
          .gain = MeanGain(best)};
}

bool ReplayEvidence::Contradicts() const {
  const size_t best = Best();
  return best != 0 && gains_.size() >= kWindowsNeeded && MeanGain(best) >= kLeastGain &&
         std::all_of(gains_.begin(), gains_.end(),
                     [best](const std::vector<double>& window) { return window[best] > 0.0; });
}

}  // namespace aerie
