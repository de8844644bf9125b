// The weights of one matrix as products read them: packed once, when a drafter is loaded.
//
// A *channel* is a row of the matrix as checkpoints store it, one output of the product; an *input*
// is a column. Channels stand in *panels* of 32. A panel holds its weights input by input, so that
// a vector holds the same input of different channels, no sum goes across a vector, and a product
// reads memory from front to back:
//
//   kFloat32   [inputs][32]
//   kBFloat16  [pairs of inputs][32][2]
//   kInt8      [pairs of inputs][32][2], with one scale for each channel
//
// The last panel and an odd last input are filled with zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace aerie {

enum class WeightElement {
  kFloat32,
  kBFloat16,
  kInt8,  // symmetric: weight = integer in -127..127 times the scale of its channel
};

inline constexpr int64_t kPanelChannels = 32;

// Which channels a row of weights becomes.
enum class ChannelOrder {
  kPlain,         // row i is channel i
  kFirstOfPair,   // rows of two matrices share panels, 16 of each: what is multiplied with each
  kSecondOfPair,  // other afterwards is computed together
};

// Move-only. Threads may share one that is complete.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  // All zeros. `channels`: of kPlain; with pairs, rows of one of the two matrices. Throws
  // std::bad_alloc.
  PackedMatrix(WeightElement element, int64_t channels, int64_t inputs, bool pairs = false);
  PackedMatrix(PackedMatrix&& other) noexcept;
  PackedMatrix& operator=(PackedMatrix&& other) noexcept;
  ~PackedMatrix();

  // `rows` [count, inputs], finite, become rows first .. first + count - 1.
  void SetRows(int64_t first, int64_t count, const float* rows,
               ChannelOrder order = ChannelOrder::kPlain);

  bool empty() const { return panels_ == 0; }
  WeightElement element() const { return element_; }
  int64_t channels() const { return channels_; }
  int64_t inputs() const { return inputs_; }
  int64_t panels() const { return panels_; }
  int64_t panel_bytes() const { return panel_bytes_; }
  const std::byte* data() const { return data_; }
  // [panels x 32]; null but for kInt8.
  const float* scales() const { return scales_.empty() ? nullptr : scales_.data(); }
  // Of the weights and scales, without what fills panels up.
  int64_t weight_bytes() const;

 private:
  WeightElement element_ = WeightElement::kFloat32;
  bool pairs_ = false;
  int64_t channels_ = 0, inputs_ = 0, panels_ = 0, panel_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::vector<float> scales_;
};

}  // namespace aerie
