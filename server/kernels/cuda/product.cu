// Products of few rows with a matrix: memory gives the weights, everything else must not be in the
// way.
//
// A warp takes four channels and up to eight rows: a lane reads 16 bytes of each channel, and of
// each row the inputs that belong to them. More rows are groups of eight that stand side by side in
// the grid, so that the weights come from the second-level cache for all but the first. Whatever
// the group, one row's products are summed up in one order.
#include "server/kernels/cuda/enqueue.cuh"
#include "server/kernels/cuda/lanes.cuh"
#include "server/kernels/cuda/product_finish.cuh"
#include "server/kernels/cuda/sixteen.cuh"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {
namespace {

constexpr int kThreads = 128;
constexpr int kChannels = 4;  // of a warp
constexpr int kBlockChannels = kThreads / kWarp * kChannels;
constexpr int kMaxRows = 8;

// Four inputs from k on; zero behind the last.
__device__ float4 Inputs(const float* row, int64_t k, int64_t inputs, bool aligned) {
  if (aligned && k + 4 <= inputs) return *reinterpret_cast<const float4*>(row + k);
  return make_float4(k < inputs ? row[k] : 0.0f, k + 1 < inputs ? row[k + 1] : 0.0f,
                     k + 2 < inputs ? row[k + 2] : 0.0f, k + 3 < inputs ? row[k + 3] : 0.0f);
}

template <DeviceElement kElement, int kRows>
__global__ void __launch_bounds__(kThreads) ProductKernel(ProductOp op) {
  using Bits = Sixteen<kElement>;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t channel = int64_t{static_cast<int>(blockIdx.y)} * kBlockChannels +
                          warp * kChannels;  // the first of four
  const int64_t first_row = int64_t{static_cast<int>(blockIdx.x)} * kRows;
  if (channel >= op.channels) return;  // the whole warp

  // What lies behind the last channel or row is computed like the last, and not written.
  const uint4* weights[kChannels];
  for (int c = 0; c < kChannels; ++c) {
    const int64_t own = channel + c < op.channels ? channel + c : op.channels - 1;
    weights[c] =
        reinterpret_cast<const uint4*>(static_cast<const char*>(op.matrix.weights) +
                                       (op.first_channel + own) * op.matrix.stride * Bits::kBytes);
  }
  const float* in[kRows];
  for (int r = 0; r < kRows; ++r) {
    const int64_t own = first_row + r < op.rows ? first_row + r : op.rows - 1;
    in[r] = op.in + RowNumber(op.in_rows, own) * op.in_stride;
  }
  const bool aligned = op.in_stride % 4 == 0 && reinterpret_cast<uintptr_t>(op.in) % 16 == 0;

  float sums[kChannels][kRows] = {};
  const int64_t pieces = op.matrix.stride / Bits::kCount;
#pragma unroll 2
  for (int64_t piece = lane; piece < pieces; piece += kWarp) {
    uint4 bits[kChannels];
#pragma unroll
    for (int c = 0; c < kChannels; ++c) bits[c] = __ldg(weights[c] + piece);
#pragma unroll
    for (int part = 0; part < Bits::kCount / 4; ++part) {
      float4 four[kChannels];
#pragma unroll
      for (int c = 0; c < kChannels; ++c) four[c] = Bits::Part(bits[c], part);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float4 x = Inputs(in[r], piece * Bits::kCount + part * 4, op.matrix.inputs, aligned);
#pragma unroll
        for (int c = 0; c < kChannels; ++c) {
          float sum = fmaf(four[c].x, x.x, sums[c][r]);
          sum = fmaf(four[c].y, x.y, sum);
          sum = fmaf(four[c].z, x.z, sum);
          sums[c][r] = fmaf(four[c].w, x.w, sum);
        }
      }
    }
  }

#pragma unroll
  for (int c = 0; c < kChannels; ++c) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      sums[c][r] = LaneSum(sums[c][r]);
      if (Bits::kBytes == 1) {
        const int64_t own = channel + c < op.channels ? channel + c : op.channels - 1;
        sums[c][r] *= op.matrix.scales[op.first_channel + own] * Bits::kUnit;
      }
    }
  }
  // Each lane writes the number that is its own; all of them know all.
#pragma unroll
  for (int c = 0; c < kChannels; ++c) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (lane != c * kRows + r || channel + c >= op.channels || first_row + r >= op.rows) continue;
      if (op.finish == DeviceFinish::kSwiGlu && c % 2 != 0) continue;
      Write(op, first_row + r, channel + c, sums[c][r], sums[(c + 1) % kChannels][r]);
    }
  }
}

template <DeviceElement kElement, int kRows>
cudaError_t LaunchRows(const ProductOp& op, cudaStream_t stream) {
  // The groups of rows are neighbours in the grid, and so in time.
  const dim3 grid(static_cast<unsigned>((op.rows + kRows - 1) / kRows),
                  static_cast<unsigned>((op.channels + kBlockChannels - 1) / kBlockChannels));
  return Launch(ProductKernel<kElement, kRows>, op, grid, kThreads, stream);
}

template <DeviceElement kElement>
cudaError_t LaunchElement(const ProductOp& op, cudaStream_t stream) {
  if (op.rows <= 1) return LaunchRows<kElement, 1>(op, stream);
  if (op.rows <= 2) return LaunchRows<kElement, 2>(op, stream);
  if (op.rows <= 4) return LaunchRows<kElement, 4>(op, stream);
  return LaunchRows<kElement, kMaxRows>(op, stream);
}

}  // namespace

cudaError_t Enqueue(const ProductOp& op, cudaStream_t stream) {
  switch (op.matrix.element) {
    case DeviceElement::kFloat32:
      return LaunchElement<DeviceElement::kFloat32>(op, stream);
    case DeviceElement::kBFloat16:
      return LaunchElement<DeviceElement::kBFloat16>(op, stream);
    case DeviceElement::kInt8:
      return LaunchElement<DeviceElement::kInt8>(op, stream);
    case DeviceElement::kFp8:
      break;
  }
  return LaunchElement<DeviceElement::kFp8>(op, stream);
}

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
