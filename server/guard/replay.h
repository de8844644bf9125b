// Rows that came, drafted once more as if their captures stood in another order: the drafter itself
// says which order it was trained with.
//
// Orders only. Shifted tokens cannot be judged so: with each row's token moved one back, the
// drafter is asked for a token that the target's state already tells, and log-likelihood rises
// although the wiring is worse. TokenAlignment sees shifts. Layers that were not sent cannot be
// tried.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/hidden_rows.h"
#include "common/wiring_report.h"

namespace aerie {

// The drafter's capture i is taken from captures[i] of the rows as sent.
struct CaptureOrder {
  std::vector<int32_t> captures;

  bool AsSent() const;
  std::string ToString() const;  // "as sent", "in the order 0, 2, 1"
};

// As sent first, then every other order of up to four captures; of more, every swap of two.
std::vector<CaptureOrder> CandidateOrders(int32_t captures);

// Contiguous rows of one session, and what to try. The owner drafts nothing: it runs the rows as
// the first rows of a sequence once for each order, at their positions, with the log-probability of
// tokens[i + 1] behind row i, and hands the numbers to WiringGuard::OnReplay.
struct ReplayRequest {
  int64_t id = 0;
  int64_t base_length = 0;      // row index of the first
  std::vector<int32_t> tokens;  // of the rows
  std::vector<CaptureOrder> orders;
  DType dtype = DType::kF32;
  int64_t width = 0;
  std::string bytes;  // [tokens.size(), width] as sent

  // The rows under one of the orders.
  std::string Reordered(const CaptureOrder& order) const;
  HiddenRows View(const std::string& reordered) const;
};

// Of one request: for each order, in the request's order, the log-probability of tokens[i + 1]
// behind row i, [tokens - 1]; minus infinity: outside the vocabulary.
struct ReplayScores {
  int64_t id = 0;
  std::vector<std::vector<float>> log_probs;
};

// Over the windows that came back. Engine thread only.
class ReplayEvidence {
 public:
  explicit ReplayEvidence(int32_t captures) : orders_(CandidateOrders(captures)) {}

  void Add(const ReplayScores& scores);
  ReplayReport Report() const;
  // True when another order is better in every one of enough windows, and by enough.
  bool Contradicts() const;

 private:
  size_t Best() const;
  double MeanGain(size_t order) const;

  std::vector<CaptureOrder> orders_;
  std::vector<std::vector<double>> gains_;  // [windows][orders], nats a row over the rows as sent
};

}  // namespace aerie
