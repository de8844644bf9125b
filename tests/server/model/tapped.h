// The logits of a model, row by row.
#pragma once

#include <utility>
#include <vector>

#include "server/model/eagle3_model_internal.h"

namespace aerie {

using Scores = std::vector<float>;

// Logits that went through the tap, as long as it lives.
class Tapped {
 public:
  explicit Tapped(DraftModel& model) : model_(model) {
    SetLogitsTap(model, [this](size_t, absl::Span<const float> row) {
      rows_.emplace_back(row.begin(), row.end());
    });
  }
  ~Tapped() { SetLogitsTap(model_, nullptr); }
  Tapped(const Tapped&) = delete;

  std::vector<Scores> Take() { return std::exchange(rows_, {}); }

 private:
  DraftModel& model_;
  std::vector<Scores> rows_;
};

}  // namespace aerie
