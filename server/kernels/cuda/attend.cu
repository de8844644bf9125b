// Attention over pages. A block takes one row of queries, up to four query heads of one key head,
// and the rows of one split of the sequence; its warps take these in turn, each with a softmax of
// its own that grows row by row. What warps and splits found is joined at the end.
#include <cmath>

#include "server/kernels/cuda/enqueue.cuh"
#include "server/kernels/cuda/lanes.cuh"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kQueries = 4;  // of a block

// Of the rows of [begin, end) that lie in the split, the first and how many.
struct Piece {
  int32_t begin, count;
};

__device__ Piece InSplit(int32_t begin, int32_t end, int32_t split) {
  const int32_t first = split * kSplitRows, last = first + kSplitRows;
  begin = begin > first ? begin : first;
  end = end < last ? end : last;
  return {begin, end > begin ? end - begin : 0};
}

// A lane's channels of a row: kChannels from lane x kChannels on.
template <DeviceElement kElement, int kChannels>
__device__ void LoadRow(const std::byte* rows, int64_t number, int dim, int lane, float* to) {
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    const int d = lane * kChannels + i;
    if (kElement == DeviceElement::kFloat32) {
      to[i] = d < dim ? reinterpret_cast<const float*>(rows)[number * dim + d] : 0.0f;
    } else {
      to[i] = d < dim ? FromBf16(reinterpret_cast<const uint16_t*>(rows)[number * dim + d]) : 0.0f;
    }
  }
}

// The softmax of one query so far: sums are in units of e^largest.
template <int kChannels>
struct Running {
  float largest = -INFINITY, sum = 0.0f;
  float values[kChannels] = {};

  __device__ void Add(float score, const float* row) {
    const float now = fmaxf(largest, score);
    const float keep = expf(largest - now), weight = expf(score - now);
    sum = fmaf(sum, keep, weight);
#pragma unroll
    for (int i = 0; i < kChannels; ++i) values[i] = fmaf(values[i], keep, weight * row[i]);
    largest = now;
  }
};

// In units of what they are joined in; nothing weighs nothing.
__device__ float Weight(float largest, float of_all) {
  return largest == -INFINITY ? 0.0f : expf(largest - of_all);
}

template <DeviceElement kElement, int kChannels>
__global__ void __launch_bounds__(kThreads) AttendKernel(AttendOp op) {
  __shared__ float found[kWarps][kQueries][kChannels * kWarp];
  __shared__ float largest[kWarps][kQueries], sums[kWarps][kQueries];
  const DevicePages& kv = op.pages;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int group = op.heads / kv.kv_heads, dim = kv.head_dim;
  const int parts = (group + kQueries - 1) / kQueries;
  const int kv_head = static_cast<int>(blockIdx.x) / parts;
  const int part = static_cast<int>(blockIdx.x) % parts;
  const int first_head = kv_head * group + part * kQueries;
  const int queries = min(kQueries, group - part * kQueries);
  const int64_t row = static_cast<int>(blockIdx.y);
  const int split = static_cast<int>(blockIdx.z);
  const DeviceSeen seen = op.seen[row];

  float query[kQueries][kChannels];
  Running<kChannels> running[kQueries];
#pragma unroll
  for (int q = 0; q < kQueries; ++q) {
    const float* const own =
        op.queries + row * op.query_stride + (first_head + min(q, queries - 1)) * dim;
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      const int d = lane * kChannels + i;
      query[q][i] = d < dim ? own[d] * op.scale : 0.0f;
    }
  }
  const Piece early = InSplit(seen.early_begin, seen.early_end, split);
  const Piece late = InSplit(seen.late_begin, seen.late_end, split);
  const int32_t ranges = early.count + late.count;
  for (int32_t i = warp; i < ranges + seen.singles; i += kWarps) {
    int32_t at;
    if (i < ranges) {
      at = i < early.count ? early.begin + i : late.begin + i - early.count;
    } else {
      at = op.table[seen.first_single + i - ranges];
      if (at / kSplitRows != split) continue;
    }
    const std::byte* const page =
        kv.store + op.table[seen.first_page + at / kv.page_rows] * kv.page_bytes;
    const int64_t number = int64_t{kv_head} * kv.page_rows + at % kv.page_rows;
    float key[kChannels], value[kChannels];
    LoadRow<kElement, kChannels>(page + kv.keys_at, number, dim, lane, key);
    LoadRow<kElement, kChannels>(page + kv.values_at, number, dim, lane, value);
#pragma unroll
    for (int q = 0; q < kQueries; ++q) {
      float score = 0.0f;
#pragma unroll
      for (int c = 0; c < kChannels; ++c) score = fmaf(query[q][c], key[c], score);
      running[q].Add(LaneSum(score), value);
    }
  }
#pragma unroll
  for (int q = 0; q < kQueries; ++q) {
#pragma unroll
    for (int i = 0; i < kChannels; ++i) found[warp][q][lane * kChannels + i] = running[q].values[i];
    if (lane == 0) {
      largest[warp][q] = running[q].largest;
      sums[warp][q] = running[q].sum;
    }
  }
  __syncthreads();

  for (int q = 0; q < queries; ++q) {
    float most = largest[0][q], sum = 0.0f;
    for (int w = 1; w < kWarps; ++w) most = fmaxf(most, largest[w][q]);
    for (int w = 0; w < kWarps; ++w) sum += sums[w][q] * Weight(largest[w][q], most);
    const int64_t head = row * op.heads + first_head + q;
    float* const partial =
        op.splits == 1 ? nullptr : op.partials + (head * op.splits + split) * (dim + 2);
    for (int d = static_cast<int>(threadIdx.x); d < dim; d += kThreads) {
      float value = 0.0f;
      for (int w = 0; w < kWarps; ++w) value += found[w][q][d] * Weight(largest[w][q], most);
      if (op.splits == 1) {
        op.out[head * dim + d] = value / sum;
      } else {
        partial[2 + d] = value;
      }
    }
    if (op.splits > 1 && threadIdx.x == 0) {
      partial[0] = most;
      partial[1] = sum;
    }
  }
}

// One head of one row: joins its splits.
__global__ void __launch_bounds__(kThreads) JoinKernel(AttendOp op) {
  const int dim = op.pages.head_dim;
  const int64_t head = int64_t{static_cast<int>(blockIdx.y)} * op.heads + blockIdx.x;
  const float* const partials = op.partials + head * op.splits * (dim + 2);
  float most = -INFINITY, sum = 0.0f;
  for (int split = 0; split < op.splits; ++split) most = fmaxf(most, partials[split * (dim + 2)]);
  for (int split = 0; split < op.splits; ++split) {
    const float* const partial = partials + split * (dim + 2);
    sum += partial[1] * Weight(partial[0], most);
  }
  for (int d = static_cast<int>(threadIdx.x); d < dim; d += kThreads) {
    float value = 0.0f;
    for (int split = 0; split < op.splits; ++split) {
      const float* const partial = partials + split * (dim + 2);
      value += partial[2 + d] * Weight(partial[0], most);
    }
    op.out[head * dim + d] = value / sum;
  }
}

template <DeviceElement kElement>
cudaError_t LaunchElement(const AttendOp& op, cudaStream_t stream) {
  const int group = op.heads / op.pages.kv_heads, dim = op.pages.head_dim;
  const dim3 grid(static_cast<unsigned>(op.pages.kv_heads * ((group + kQueries - 1) / kQueries)),
                  static_cast<unsigned>(op.chosen), static_cast<unsigned>(op.splits));
  if (dim <= 2 * kWarp) return Launch(AttendKernel<kElement, 2>, op, grid, kThreads, stream);
  if (dim <= 4 * kWarp) return Launch(AttendKernel<kElement, 4>, op, grid, kThreads, stream);
  if (dim <= 8 * kWarp) return Launch(AttendKernel<kElement, 8>, op, grid, kThreads, stream);
  return Launch(AttendKernel<kElement, 16>, op, grid, kThreads, stream);
}

}  // namespace

cudaError_t Enqueue(const AttendOp& op, cudaStream_t stream) {
  const cudaError_t error = op.pages.element == DeviceElement::kFloat32
                                ? LaunchElement<DeviceElement::kFloat32>(op, stream)
                                : LaunchElement<DeviceElement::kBFloat16>(op, stream);
  if (error != cudaSuccess || op.splits == 1) return error;
  const dim3 grid(static_cast<unsigned>(op.heads), static_cast<unsigned>(op.chosen));
  return Launch(JoinKernel, op, grid, kThreads, stream);
}

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
