#include "server/kernels/cuda/large_product.cuh"

#include <algorithm>
#include <utility>

#include "server/kernels/cuda/cuda_check.cuh"
#include "server/kernels/cuda/enqueue.cuh"
#include "server/kernels/cuda/lanes.cuh"
#include "server/kernels/cuda/product_finish.cuh"
#include "server/kernels/cuda/sixteen.cuh"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {
namespace {

constexpr int kThreads = 256;
// A product is done in pieces, so that what lies between its steps stays small: at most so many
// rows and channels. Each is enough to keep a device busy.
constexpr int64_t kPieceRows = 512, kPieceChannels = 8192;
// Of weights that are made bfloat16.
constexpr int64_t kPieceWideBytes = int64_t{64} << 20;

bool IsByte(DeviceElement element) {
  return element == DeviceElement::kInt8 || element == DeviceElement::kFp8;
}

int64_t PieceChannels(const DeviceMatrix& matrix) {
  int64_t most = kPieceChannels;
  if (IsByte(matrix.element)) most = std::min(most, kPieceWideBytes / (2 * matrix.stride));
  // Pairs stay together.
  return std::min(matrix.channels, std::max<int64_t>(2, most / 2 * 2));
}

struct InputsOp {
  ProductOp op;
  void* to;  // [2 x rows, stride] of bfloat16, or [rows, stride] of float32
};

__global__ void __launch_bounds__(kThreads) InputsKernel(InputsOp inputs) {
  const ProductOp& op = inputs.op;
  const int64_t stride = op.matrix.stride, row = static_cast<int>(blockIdx.y);
  const int64_t i =
      int64_t{static_cast<int>(blockIdx.x)} * kThreads + static_cast<int>(threadIdx.x);
  if (i >= stride) return;
  const float value =
      i < op.matrix.inputs ? op.in[RowNumber(op.in_rows, row) * op.in_stride + i] : 0.0f;
  if (op.matrix.element == DeviceElement::kFloat32) {
    static_cast<float*>(inputs.to)[row * stride + i] = value;
    return;
  }
  uint16_t* const to = static_cast<uint16_t*>(inputs.to);
  const uint16_t high = ToBf16(value);
  to[row * stride + i] = high;
  to[(op.rows + row) * stride + i] = ToBf16(value - FromBf16(high));
}

struct WideOp {
  DeviceMatrix matrix;
  int64_t first_channel;
  uint16_t* to;  // [channels, stride]
};

// Exact: integers of a byte and fp8 have at most eight digits.
template <DeviceElement kElement>
__global__ void __launch_bounds__(kThreads) WideKernel(WideOp op) {
  using Bits = Sixteen<kElement>;
  const int64_t pieces = op.matrix.stride / Bits::kCount, channel = static_cast<int>(blockIdx.y);
  const int64_t piece =
      int64_t{static_cast<int>(blockIdx.x)} * kThreads + static_cast<int>(threadIdx.x);
  if (piece >= pieces) return;
  const uint4 bits = __ldg(static_cast<const uint4*>(op.matrix.weights) +
                           (op.first_channel + channel) * pieces + piece);
  uint16_t* const to = op.to + channel * op.matrix.stride + piece * Bits::kCount;
#pragma unroll
  for (int part = 0; part < Bits::kCount / 4; ++part) {
    const float4 four = Bits::Part(bits, part);
    to[4 * part] = ToBf16(four.x);
    to[4 * part + 1] = ToBf16(four.y);
    to[4 * part + 2] = ToBf16(four.z);
    to[4 * part + 3] = ToBf16(four.w);
  }
}

struct FinishOp {
  ProductOp op;
  const float* sums;  // [rows, channels], below them those of what rounding the inputs left
  float unit;         // by which weights were made too small
};

__device__ float SumOf(const FinishOp& finish, int64_t row, int64_t channel) {
  const ProductOp& op = finish.op;
  float sum = finish.sums[row * op.channels + channel];
  if (op.matrix.element != DeviceElement::kFloat32)
    sum += finish.sums[(op.rows + row) * op.channels + channel];
  if (op.matrix.scales != nullptr)
    sum *= op.matrix.scales[op.first_channel + channel] * finish.unit;
  return sum;
}

__global__ void __launch_bounds__(kThreads) FinishKernel(FinishOp finish) {
  const ProductOp& op = finish.op;
  const bool pairs = op.finish == DeviceFinish::kSwiGlu;
  const int64_t row = static_cast<int>(blockIdx.y);
  const int64_t channel =
      (int64_t{static_cast<int>(blockIdx.x)} * kThreads + static_cast<int>(threadIdx.x)) *
      (pairs ? 2 : 1);
  if (channel >= op.channels) return;
  Write(op, row, channel, SumOf(finish, row, channel),
        pairs ? SumOf(finish, row, channel + 1) : 0.0f);
}

dim3 Grid(int64_t across, int64_t rows) {
  return {static_cast<unsigned>((across + kThreads - 1) / kThreads), static_cast<unsigned>(rows)};
}

// Rows [row, row + rows) and channels [channel, channel + channels) of a product, as one of its
// own.
ProductOp PieceOf(ProductOp op, int64_t row, int64_t rows, int64_t channel, int64_t channels) {
  if (op.in_rows != nullptr) {
    op.in_rows += row;
  } else {
    op.in += row * op.in_stride;
  }
  if (op.residual_rows != nullptr) {
    op.residual_rows += row;
  } else if (op.residual != nullptr) {
    op.residual += row * op.residual_stride;
  }
  if (op.residual != nullptr) op.residual += channel;
  if (op.bias != nullptr) op.bias += channel;
  op.out += row * op.out_stride + (op.finish == DeviceFinish::kSwiGlu ? channel / 2 : channel);
  op.first_channel += channel;
  op.channels = channels;
  op.rows = static_cast<int32_t>(rows);
  return op;
}

}  // namespace

LargeProducts::LargeProducts(Device& device, cudaStream_t stream, std::unique_ptr<Gemm> gemm)
    : stream_(stream),
      gemm_(std::move(gemm)),
      in_(device, MemoryKind::kDevice),
      sums_(device, MemoryKind::kDevice),
      wide_(device, MemoryKind::kDevice) {}

void LargeProducts::Reserve(const DeviceMatrix& matrix) {
  const int64_t channels = PieceChannels(matrix);
  // Two rows of bfloat16 for one of float32.
  in_.Reserve<float>(kPieceRows * matrix.stride);
  sums_.Reserve<float>(2 * kPieceRows * channels);
  if (IsByte(matrix.element)) wide_.Reserve<uint16_t>(channels * matrix.stride);
}

void LargeProducts::Run(const ProductOp& op) {
  Reserve(op.matrix);
  const int64_t step = PieceChannels(op.matrix);
  for (int64_t channel = 0; channel < op.channels; channel += step) {
    const int64_t channels = std::min(step, op.channels - channel);
    if (IsByte(op.matrix.element)) {
      const WideOp wide = {op.matrix, op.first_channel + channel, wide_.Get<uint16_t>()};
      const bool fp8 = op.matrix.element == DeviceElement::kFp8;
      Check(Launch(fp8 ? WideKernel<DeviceElement::kFp8> : WideKernel<DeviceElement::kInt8>, wide,
                   Grid(op.matrix.stride / 16, channels), kThreads, stream_),
            "making weights bfloat16");
    }
    for (int64_t row = 0; row < op.rows; row += kPieceRows)
      RunPiece(PieceOf(op, row, std::min(kPieceRows, op.rows - row), channel, channels));
  }
}

void LargeProducts::RunPiece(const ProductOp& op) {
  const DeviceMatrix& matrix = op.matrix;
  const bool halves = matrix.element != DeviceElement::kFloat32;
  const InputsOp inputs = {op, in_.Get<void>()};
  Check(Launch(InputsKernel, inputs, Grid(matrix.stride, op.rows), kThreads, stream_),
        "making inputs ready for a product");
  const char* weights = static_cast<const char*>(matrix.weights) +
                        op.first_channel * matrix.stride * ElementBytes(matrix.element);
  GemmOp product;
  product.in = in_.Get<void>();
  product.weights = IsByte(matrix.element) ? wide_.Get<char>() : weights;
  product.halves = halves;
  product.rows = halves ? 2 * op.rows : op.rows;
  product.channels = static_cast<int32_t>(op.channels);
  product.inputs = static_cast<int32_t>(matrix.stride);
  product.out = sums_.Get<float>();
  gemm_->Run(product);
  const FinishOp finish = {
      op, sums_.Get<float>(),
      matrix.element == DeviceElement::kFp8 ? Sixteen<DeviceElement::kFp8>::kUnit : 1.0f};
  const int64_t across = op.finish == DeviceFinish::kSwiGlu ? op.channels / 2 : op.channels;
  Check(Launch(FinishKernel, finish, Grid(across, op.rows), kThreads, stream_),
        "finishing a product");
}

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
