#include "server/model/weight_loader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/safetensors/mapped_file.h"
#include "server/model/tensor_view.h"

namespace aerie {
namespace {

constexpr int64_t kBlockBytes = int64_t{4} << 20;
// Rows that one thread packs at a time: those of a panel.
constexpr int64_t kTaskRows = kPanelChannels;
// Half way from the largest number of bfloat16 to the one that would follow it: from here on it
// rounds to infinity.
constexpr double kBFloat16Overflow = 0x1.ffp127;

int64_t RowBytes(const TensorSpan& span) {
  return std::max<int64_t>(1, static_cast<int64_t>(span.bytes.size()) / span.shape.at(0));
}

// Calls `visit(first, rows)` with one block of rows after another, and lets the pages behind each
// go, at the end those on the borders of blocks as well.
template <typename Visit>
void ForEachBlock(const TensorSpan& span, Visit&& visit) {
  const int64_t rows = span.shape.at(0), row_bytes = RowBytes(span);
  const int64_t step = std::max<int64_t>(1, kBlockBytes / row_bytes);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    TensorSpan block = span;
    block.shape[0] = count;
    block.bytes = span.bytes.substr(first * row_bytes, count * row_bytes);
    visit(first, block);
    ReleasePages(block.bytes);
  }
  ReleasePages(span.bytes);
}

// [1] or [rows].
at::Tensor Scales(const TensorSpan& span) { return CopyTensor(span, at::kFloat).reshape({-1}); }

}  // namespace

at::Tensor WeightLoader::Stack(std::initializer_list<TensorKey> keys) {
  std::vector<int64_t> shape = checkpoint_.tensors.at(*keys.begin()).shape;
  shape[0] = 0;
  for (const TensorKey& key : keys) shape[0] += checkpoint_.tensors.at(key).shape[0];
  at::Tensor stacked = at::empty(shape, at::TensorOptions(dtype_));
  int64_t first = 0;
  for (const TensorKey& key : keys) {
    const int64_t rows = checkpoint_.tensors.at(key).shape[0];
    Convert(key, stacked.narrow(0, first, rows));
    first += rows;
  }
  bytes_ += static_cast<int64_t>(stacked.nbytes());
  return stacked;
}

at::Tensor WeightLoader::Norm(const TensorKey& key) {
  at::Tensor norm = at::empty(checkpoint_.tensors.at(key).shape, at::TensorOptions(at::kFloat));
  Convert(key, norm);
  bytes_ += static_cast<int64_t>(norm.nbytes());
  return norm;
}

PackedMatrix WeightLoader::Packed(std::initializer_list<TensorKey> keys, WeightElement element) {
  int64_t rows = 0;
  for (const TensorKey& key : keys) rows += checkpoint_.tensors.at(key).shape[0];
  PackedMatrix packed(element, rows, checkpoint_.tensors.at(*keys.begin()).shape[1]);
  int64_t first = 0;
  for (const TensorKey& key : keys) {
    Pack(key, first, ChannelOrder::kPlain, packed);
    first += checkpoint_.tensors.at(key).shape[0];
  }
  bytes_ += packed.weight_bytes();
  return packed;
}

PackedMatrix WeightLoader::PackedPairs(const TensorKey& first, const TensorKey& second,
                                       WeightElement element) {
  const TensorSpan& span = checkpoint_.tensors.at(first);
  PackedMatrix packed(element, span.shape[0], span.shape[1], /*pairs=*/true);
  Pack(first, 0, ChannelOrder::kFirstOfPair, packed);
  Pack(second, 0, ChannelOrder::kSecondOfPair, packed);
  bytes_ += packed.weight_bytes();
  return packed;
}

std::vector<float> WeightLoader::Vector(std::initializer_list<TensorKey> keys) {
  std::vector<float> values;
  for (const TensorKey& key : keys) {
    const at::Tensor norm = Norm(key);
    const absl::Span<const float> part = Floats(norm);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

MappedRows WeightLoader::Embedding() {
  const TensorSpan& span = checkpoint_.embedding;
  ForEachBlock(span, [&](int64_t, const TensorSpan& block) {
    CheckFinite(span, FloatsOf(block), at::kFloat);
  });
  bytes_ += static_cast<int64_t>(span.bytes.size());
  // It lies in one of them; which one is not said.
  using Folder = std::shared_ptr<const WeightsFolder>;
  return MappedRows(span, std::make_shared<const std::pair<Folder, Folder>>(
                              checkpoint_.head_weights, checkpoint_.target_weights));
}

void WeightLoader::Convert(const TensorKey& key, at::Tensor out) {
  const TensorSpan& span = checkpoint_.tensors.at(key);
  at::Tensor scales;
  if (const auto found = checkpoint_.scales.find(key); found != checkpoint_.scales.end())
    scales = Scales(found->second);
  ForEachBlock(span, [&](int64_t first, const TensorSpan& block) {
    const int64_t rows = block.shape[0];
    at::Tensor part = out.narrow(0, first, rows);
    if (scales.defined()) {
      const at::Tensor scale = scales.size(0) == 1 ? scales : scales.narrow(0, first, rows);
      part.copy_(FloatsOf(block).mul_(scale.unsqueeze(1)));
    } else {
      CopyInto(block, part);
    }
    CheckFinite(span, part, part.scalar_type());
  });
}

void WeightLoader::Pack(const TensorKey& key, int64_t first_row, ChannelOrder order,
                        PackedMatrix& out) {
  const TensorSpan& span = checkpoint_.tensors.at(key);
  at::Tensor scales;
  if (const auto found = checkpoint_.scales.find(key); found != checkpoint_.scales.end())
    scales = Scales(found->second);
  ForEachBlock(span, [&](int64_t first, const TensorSpan& block) {
    const int64_t rows = block.shape[0];
    const at::Tensor floats = FloatsOf(block);
    if (scales.defined()) {
      floats.mul_((scales.size(0) == 1 ? scales : scales.narrow(0, first, rows)).unsqueeze(1));
    }
    // What is finite in float32 may be too large for bfloat16.
    const bool narrow = out.element() == WeightElement::kBFloat16;
    CheckFinite(span, floats, narrow ? at::kBFloat16 : at::kFloat);
    if (!status_.ok()) return;
    const float* const from = floats.const_data_ptr<float>();
    const int64_t width = span.shape[1];
    pool_.Run((rows + kTaskRows - 1) / kTaskRows, [&](int64_t task, int) {
      const int64_t begin = task * kTaskRows, count = std::min(kTaskRows, rows - begin);
      out.SetRows(first_row + first + begin, count, from + begin * width, order);
    });
  });
}

at::Tensor WeightLoader::FloatsOf(const TensorSpan& block) {
  int64_t elements = 1;
  for (const int64_t size : block.shape) elements *= size;
  if (!floats_.defined() || floats_.numel() < elements) {
    floats_ = at::Tensor();  // gone before the larger one comes
    floats_ = at::empty({elements}, at::TensorOptions(at::kFloat));
  }
  at::Tensor floats = floats_.narrow(0, 0, elements).view(block.shape);
  CopyInto(block, floats);
  return floats;
}

void WeightLoader::CheckFinite(const TensorSpan& span, const at::Tensor& block,
                               at::ScalarType type) {
  if (!status_.ok()) return;
  const double limit =
      type == at::kBFloat16 ? kBFloat16Overflow : std::numeric_limits<double>::infinity();
  const auto [least, greatest] = at::aminmax(block);  // NaN wins in both
  // NaN is not below anything.
  if (std::abs(least.item<double>()) < limit && std::abs(greatest.item<double>()) < limit) return;
  status_ = absl::FailedPreconditionError(
      absl::StrCat("the weights of ", span.name,
                   " hold NaN or infinite values; expected numbers; fetch the files again, or load "
                   "them with --dtype=float32"));
}

}  // namespace aerie
