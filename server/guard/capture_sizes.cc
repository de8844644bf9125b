#include "server/guard/capture_sizes.h"

#include <algorithm>
#include <cmath>

#include "server/guard/channel_rows.h"
#include "server/guard/guard_profile.h"

namespace aerie {
namespace {

// A whole row is read, which costs as much as all else of the guard: one call in so many.
constexpr int64_t kCallsPerLook = 8;
// Rows that the mean rests on.
constexpr int64_t kMemory = 64;

}  // namespace

bool CaptureSizes::Add(int64_t base_length, const HiddenRows& rows) {
  const auto captures = static_cast<int64_t>(squares_.size());
  const int64_t row = rows.rows() - 1;
  if (row < 0 || base_length + row < kFirstComparedPosition) return false;
  const int64_t width = rows.width() / captures;
  if (width == 0 || width * captures != rows.width()) return false;
  if (calls_++ % kCallsPerLook != 0) return false;
  looked_at_ = std::min(looked_at_ + 1, kMemory);
  for (int64_t i = 0; i < captures; ++i) {
    double& mean = squares_[static_cast<size_t>(i)];
    mean += (MeanSquare(rows, row, i * width, width) - mean) / static_cast<double>(looked_at_);
  }
  return true;
}

std::vector<double> CaptureSizes::Rms() const {
  std::vector<double> rms;
  for (const double square : squares_) rms.push_back(std::sqrt(square));
  return rms;
}

}  // namespace aerie
