#include "server/model/rope_table.h"

#include <algorithm>

namespace aerie {

void RopeTable::Reserve(int64_t positions) {
  const int64_t capacity = cos_.defined() ? cos_.size(0) : 0;
  if (positions <= capacity) return;
  const int64_t wanted = std::max<int64_t>({positions, 2 * capacity, 1024});
  // In float64: at large positions a float32 angle is off by more than a rotation is fine.
  const at::Tensor channels = at::arange(half_, at::kDouble);
  const at::Tensor frequencies =
      at::pow(at::scalar_tensor(theta_, at::kDouble), channels / -static_cast<double>(half_));
  const at::Tensor angles = at::outer(at::arange(wanted, at::kDouble), frequencies);
  at::Tensor cos = angles.cos().to(at::kFloat);
  at::Tensor sin = angles.sin().to(at::kFloat);
  cos_ = std::move(cos);
  sin_ = std::move(sin);
}

at::Tensor RopeTable::Rotate(const at::Tensor& x, const at::Tensor& positions) const {
  const at::Tensor cos = cos_.index_select(0, positions).unsqueeze(1);
  const at::Tensor sin = sin_.index_select(0, positions).unsqueeze(1);
  const at::Tensor full = x.to(at::kFloat);
  const at::Tensor first = full.narrow(2, 0, half_);
  const at::Tensor second = full.narrow(2, half_, half_);
  return at::cat({first * cos - second * sin, second * cos + first * sin}, 2);
}

}  // namespace aerie
