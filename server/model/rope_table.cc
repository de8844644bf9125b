#include "server/model/rope_table.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "server/model/rope_frequencies.h"
#include "server/model/tensor_view.h"

namespace aerie {
namespace {

at::Tensor Doubles(absl::Span<const double> values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kDouble);
  std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size() * sizeof(double));
  return tensor;
}

}  // namespace

// Angles are float64: at large positions a float32 one is off by more than a rotation is fine.
Turns RopeTable::TurnsBy(const at::Tensor& angles) const {
  const double amplitude = rope_.amplitude.value;
  const auto finish = [&](at::Tensor values) {
    return values.mul_(amplitude).to(at::kFloat).unsqueeze(1);
  };
  return {finish(angles.cos()), finish(angles.sin())};
}

void RopeTable::Reserve(int64_t positions) {
  const int64_t capacity = table_.cos.defined() ? table_.cos.size(0) : 0;
  if (positions <= capacity) return;
  const int64_t wanted = std::max<int64_t>({positions, 2 * capacity, 1024});
  const std::vector<double> frequencies = RopeFrequencies(rope_, 0);
  table_ = TurnsBy(at::outer(at::arange(wanted, at::kDouble), Doubles(frequencies)));
}

Turns RopeTable::Dynamic(absl::Span<const int64_t> positions,
                         absl::Span<const int64_t> lengths) const {
  const auto pairs = static_cast<size_t>(rope_.dims.value / 2);
  std::vector<double> angles, frequencies;
  angles.reserve(positions.size() * pairs);
  for (size_t row = 0; row < positions.size(); ++row) {
    if (row == 0 || lengths[row] != lengths[row - 1])
      frequencies = RopeFrequencies(rope_, lengths[row]);
    for (const double frequency : frequencies)
      angles.push_back(static_cast<double>(positions[row]) * frequency);
  }
  return TurnsBy(Doubles(angles).view({-1, static_cast<int64_t>(pairs)}));
}

Turns RopeTable::At(absl::Span<const int64_t> positions, absl::Span<const int64_t> lengths) {
  if (rope_.type.value == RopeType::kDynamic) return Dynamic(positions, lengths);
  Reserve(1 + *std::max_element(positions.begin(), positions.end()));
  return table_.Rows(Indices(positions));
}

at::Tensor RopeTable::Rotate(const at::Tensor& x, const Turns& turns) const {
  const int64_t dims = rope_.dims.value, half = dims / 2, rest = x.size(2) - dims;
  const bool interleaved = rope_.interleaved.value;
  const at::Tensor full = x.to(at::kFloat);
  const at::Tensor one = interleaved ? full.slice(2, 0, dims, 2) : full.narrow(2, 0, half);
  const at::Tensor other = interleaved ? full.slice(2, 1, dims, 2) : full.narrow(2, half, half);
  std::vector<at::Tensor> parts = {one * turns.cos - other * turns.sin,
                                   other * turns.cos + one * turns.sin};
  if (interleaved) parts = {at::stack(parts, 3).flatten(2)};
  if (rest > 0) parts.push_back(full.narrow(2, dims, rest));
  return parts.size() == 1 ? parts[0] : at::cat(parts, 2);
}

}  // namespace aerie
