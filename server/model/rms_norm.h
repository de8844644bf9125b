// The one norm that these heads have.
#pragma once

#include <ATen/ATen.h>

#include <utility>

namespace aerie {

class RmsNorm {
 public:
  RmsNorm() = default;  // of nothing; stands where a head has none
  // `weight` float32, as wide as the rows to come.
  RmsNorm(at::Tensor weight, double epsilon) : weight_(std::move(weight)), epsilon_(epsilon) {}

  // Whether there is one.
  explicit operator bool() const { return weight_.defined(); }

  // Over the last dimension, computed in float32; the result is of the type of `x`.
  at::Tensor operator()(const at::Tensor& x) const { return AsFloat(x).to(x.scalar_type()); }
  // The same, left in float32.
  at::Tensor AsFloat(const at::Tensor& x) const {
    const at::Tensor full = x.to(at::kFloat);
    const at::Tensor scale = full.square().mean(-1, /*keepdim=*/true).add_(epsilon_).rsqrt_();
    return (full * scale).mul_(weight_);
  }

 private:
  at::Tensor weight_;
  double epsilon_ = 0;
};

}  // namespace aerie
