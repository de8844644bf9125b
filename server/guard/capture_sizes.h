// How large the rows of each capture are, whoever sends them: for people to look at. No verdict
// follows from it, since texts vary by more than layers do.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/hidden_rows.h"

namespace aerie {

// Engine thread only.
class CaptureSizes {
 public:
  explicit CaptureSizes(int32_t captures) : squares_(static_cast<size_t>(captures)) {}

  // Looks at the last row of every few calls; true when it did. A row near a sequence's start, or
  // of a width that is not captures x something, is not looked at.
  bool Add(int64_t base_length, const HiddenRows& rows);

  // Root mean square by capture, over the recent past; zeros before the first row.
  std::vector<double> Rms() const;

 private:
  std::vector<double> squares_;  // means, in which the past fades
  int64_t calls_ = 0, looked_at_ = 0;
};

}  // namespace aerie
