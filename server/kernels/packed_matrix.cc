#include "server/kernels/packed_matrix.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "server/kernels/vector.h"

namespace aerie {
namespace {

constexpr int64_t kHalf = kPanelChannels / 2;
// From here on the system is asked for large pages: with small ones, a step misses the table of
// pages all the time, and the processor stops reading ahead at each of their ends.
constexpr int64_t kLargePage = int64_t{2} << 20;

int64_t PanelBytes(WeightElement element, int64_t inputs) {
  switch (element) {
    case WeightElement::kFloat32:
      return inputs * kPanelChannels * 4;
    case WeightElement::kBFloat16:
      return (inputs + 1) / 2 * kPanelChannels * 4;
    case WeightElement::kInt8:
      break;
  }
  return (inputs + 1) / 2 * kPanelChannels * 2;
}

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

int64_t ChannelOf(int64_t row, ChannelOrder order) {
  if (order == ChannelOrder::kPlain) return row;
  return row / kHalf * kPanelChannels + row % kHalf +
         (order == ChannelOrder::kSecondOfPair ? kHalf : 0);
}

}  // namespace

PackedMatrix::PackedMatrix(WeightElement element, int64_t channels, int64_t inputs, bool pairs)
    : element_(element),
      pairs_(pairs),
      channels_(channels),
      inputs_(inputs),
      panels_(RoundUp(channels, pairs ? kHalf : kPanelChannels) / (pairs ? kHalf : kPanelChannels)),
      panel_bytes_(PanelBytes(element, inputs)) {
  if (element == WeightElement::kInt8) scales_.resize(panels_ * kPanelChannels);
  const int64_t bytes = panels_ * panel_bytes_;
  if (bytes == 0) return;
  if (bytes < kLargePage) {
    data_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}));
    std::fill(data_, data_ + bytes, std::byte{0});
    return;
  }
  const int64_t room = RoundUp(bytes, kLargePage);
  data_ = static_cast<std::byte*>(::operator new (room, std::align_val_t{kLargePage}));
  // Only a wish: where the system has none, small pages do the same more slowly.
  madvise(data_, room, MADV_HUGEPAGE);
  std::fill(data_, data_ + bytes, std::byte{0});
}

PackedMatrix::PackedMatrix(PackedMatrix&& other) noexcept { *this = std::move(other); }

PackedMatrix& PackedMatrix::operator=(PackedMatrix&& other) noexcept {
  std::swap(element_, other.element_);
  std::swap(pairs_, other.pairs_);
  std::swap(channels_, other.channels_);
  std::swap(inputs_, other.inputs_);
  std::swap(panels_, other.panels_);
  std::swap(panel_bytes_, other.panel_bytes_);
  std::swap(data_, other.data_);
  std::swap(scales_, other.scales_);
  return *this;
}

PackedMatrix::~PackedMatrix() {
  if (data_ == nullptr) return;
  const bool large = panels_ * panel_bytes_ >= kLargePage;
  ::operator delete (data_, std::align_val_t{large ? static_cast<size_t>(kLargePage) : 64});
}

void PackedMatrix::SetRows(int64_t first, int64_t count, const float* rows, ChannelOrder order) {
  for (int64_t row = 0; row < count; ++row) {
    const float* const from = rows + row * inputs_;
    const int64_t channel = ChannelOf(first + row, order);
    const int64_t lane = channel % kPanelChannels;
    std::byte* const panel = data_ + channel / kPanelChannels * panel_bytes_;
    switch (element_) {
      case WeightElement::kFloat32: {
        auto* const to = reinterpret_cast<float*>(panel) + lane;
        for (int64_t i = 0; i < inputs_; ++i) to[i * kPanelChannels] = from[i];
        break;
      }
      case WeightElement::kBFloat16: {
        auto* const to = reinterpret_cast<uint16_t*>(panel) + lane * 2;
        for (int64_t i = 0; i < inputs_; ++i)
          to[i / 2 * kPanelChannels * 2 + i % 2] = AsBFloat16(from[i]);
        break;
      }
      case WeightElement::kInt8: {
        float largest = 0.0f;
        for (int64_t i = 0; i < inputs_; ++i) largest = std::max(largest, std::abs(from[i]));
        const float scale = largest / 127.0f;
        scales_[channel] = scale;
        auto* const to = reinterpret_cast<int8_t*>(panel) + lane * 2;
        for (int64_t i = 0; i < inputs_; ++i) {
          // A channel of zeros, or of numbers too small for a scale, is one of zeros.
          const float steps = scale > 0.0f ? from[i] / scale : 0.0f;
          to[i / 2 * kPanelChannels * 2 + i % 2] =
              static_cast<int8_t>(std::lrint(std::clamp(steps, -127.0f, 127.0f)));
        }
        break;
      }
    }
  }
}

int64_t PackedMatrix::weight_bytes() const {
  const int64_t rows = channels_ * (pairs_ ? 2 : 1);
  switch (element_) {
    case WeightElement::kFloat32:
      return rows * inputs_ * 4;
    case WeightElement::kBFloat16:
      return rows * inputs_ * 2;
    case WeightElement::kInt8:
      break;
  }
  return rows * (inputs_ + int64_t{sizeof(float)});
}

}  // namespace aerie
