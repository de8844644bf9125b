#include "server/model/rotation.h"

#include <cmath>

#include "server/model/rope_frequencies.h"

namespace aerie {

Rotation::Rotation(const RopeSpec& rope) : rope_(rope) {
  if (rope_.type.value != RopeType::kDynamic) frequencies_ = RopeFrequencies(rope_, 0);
}

// Angles are float64: at large positions a float32 one is off by more than a rotation is fine.
Turns Rotation::At(absl::Span<const int64_t> positions, absl::Span<const int64_t> lengths) const {
  const bool dynamic = rope_.type.value == RopeType::kDynamic;
  const int64_t pairs = rope_.dims.value / 2;
  at::Tensor angles = at::empty({static_cast<int64_t>(positions.size()), 1, pairs}, at::kDouble);
  double* angle = angles.mutable_data_ptr<double>();
  std::vector<double> by_length;
  for (size_t row = 0; row < positions.size(); ++row) {
    if (dynamic && (row == 0 || lengths[row] != lengths[row - 1]))
      by_length = RopeFrequencies(rope_, lengths[row]);
    for (const double frequency : dynamic ? by_length : frequencies_)
      *angle++ = static_cast<double>(positions[row]) * frequency;
  }
  const double amplitude = rope_.amplitude.value;
  return {angles.cos().mul_(amplitude).to(at::kFloat), angles.sin().mul_(amplitude).to(at::kFloat)};
}

void Rotation::FillTurns(int64_t position, int64_t length, float* cos, float* sin) const {
  const bool dynamic = rope_.type.value == RopeType::kDynamic;
  std::vector<double> by_length;
  if (dynamic) by_length = RopeFrequencies(rope_, length);
  const double* const frequencies = dynamic ? by_length.data() : frequencies_.data();
  for (int64_t pair = 0; pair < pairs(); ++pair) {
    const double angle = static_cast<double>(position) * frequencies[pair];
    cos[pair] = static_cast<float>(std::cos(angle) * rope_.amplitude.value);
    sin[pair] = static_cast<float>(std::sin(angle) * rope_.amplitude.value);
  }
}

void Rotation::RotateHead(float* head, const float* cos, const float* sin) const {
  const int64_t count = pairs();
  const bool interleaved = rope_.interleaved.value;
  for (int64_t pair = 0; pair < count; ++pair) {
    float& one = head[interleaved ? 2 * pair : pair];
    float& other = head[interleaved ? 2 * pair + 1 : count + pair];
    const float turned = one * cos[pair] - other * sin[pair];
    other = other * cos[pair] + one * sin[pair];
    one = turned;
  }
}

at::Tensor Rotation::Rotate(const at::Tensor& x, const Turns& turns) const {
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
