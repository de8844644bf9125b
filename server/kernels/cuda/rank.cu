// The best scores of a row and what makes log-probabilities of them; the scores themselves never
// leave the device.
//
// First a block for each chunk of a row: it keeps its scores in registers and picks the best k one
// by one. Then a block for each row picks from what the chunks picked. With a score that is not
// finite the order means nothing, but all of this ends, and stays within its memory.
#include <climits>
#include <cmath>

#include "server/kernels/cuda/enqueue.cuh"
#include "server/kernels/cuda/lanes.cuh"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kOwn = kRankChunk / kThreads;  // scores of a thread

// Without initialisers: some stand in shared memory.
struct Picked {
  float score;
  int32_t id;
};

__device__ Picked Nothing() { return {-INFINITY, INT_MAX}; }

// NaN is better than nothing and worse than nothing.
__device__ bool Better(const Picked& a, const Picked& b) {
  return a.score > b.score || (a.score == b.score && a.id < b.id);
}

__device__ Picked BestOfBlock(Picked own, Picked* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const Picked other = {__shfl_xor_sync(kAllLanes, own.score, step),
                          __shfl_xor_sync(kAllLanes, own.id, step)};
    if (Better(other, own)) own = other;
  }
  __syncthreads();
  if (thread % kWarp == 0) shared[thread / kWarp] = own;
  __syncthreads();
  own = shared[0];
  for (int warp = 1; warp < kWarps; ++warp) {
    if (Better(shared[warp], own)) own = shared[warp];
  }
  return own;
}

__global__ void __launch_bounds__(kThreads) RankChunkKernel(RankOp op) {
  __shared__ float shared[kWarps];
  __shared__ Picked picked[kWarps];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t row = static_cast<int>(blockIdx.y);
  const int chunk = static_cast<int>(blockIdx.x), chunks = static_cast<int>(gridDim.x);
  const float* const scores = op.scores + row * op.count;
  float own[kOwn];
  float most = -INFINITY;
  bool finite = true;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int id = chunk * kRankChunk + i * kThreads + thread;
    own[i] = id < op.count ? scores[id] : -INFINITY;
    if (id < op.count && !(fabsf(own[i]) < INFINITY)) finite = false;
    most = fmaxf(most, own[i]);
  }
  most = BlockMax<kThreads>(most, shared);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) sum += expf(own[i] - most);
  sum = BlockSum<kThreads>(sum, shared);
  const float faults = BlockSum<kThreads>(finite ? 0.0f : 1.0f, shared);
  if (thread == 0) op.chunk_sums[row * chunks + chunk] = {most, sum, 0.0f, faults == 0.0f ? 1 : 0};

  DeviceScore* const out = op.candidates + (row * chunks + chunk) * op.k;
  unsigned taken = 0;  // of a thread's own scores
  for (int pick = 0; pick < op.k; ++pick) {
    Picked best = Nothing();
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int id = chunk * kRankChunk + i * kThreads + thread;
      const Picked mine = {own[i], id};
      if (id < op.count && (taken >> i & 1u) == 0 && Better(mine, best)) best = mine;
    }
    best = BestOfBlock(best, picked);
    if (thread == 0) out[pick] = {best.score, best.id};
    const int at = best.id - chunk * kRankChunk;
    if (best.id != INT_MAX && at % kThreads == thread) taken |= 1u << (at / kThreads);
  }
}

__global__ void __launch_bounds__(kThreads) RankRowKernel(RankOp op) {
  __shared__ Picked picked[kWarps];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t row = static_cast<int>(blockIdx.x);
  const int chunks = (op.count + kRankChunk - 1) / kRankChunk;
  if (thread == 0) {
    const DeviceRowSummary* const parts = op.chunk_sums + row * chunks;
    DeviceRowSummary all = {-INFINITY, 0.0f, 0.0f, 1};
    for (int i = 0; i < chunks; ++i) {
      all.largest = fmaxf(all.largest, parts[i].largest);
      all.finite = all.finite != 0 && parts[i].finite != 0 ? 1 : 0;
    }
    for (int i = 0; i < chunks; ++i) all.sum += parts[i].sum * expf(parts[i].largest - all.largest);
    if (op.probes[row] >= 0) all.probe = op.scores[row * op.count + op.probes[row]];
    op.summaries[row] = all;
  }
  const DeviceScore* const candidates = op.candidates + row * chunks * op.k;
  Picked last = {INFINITY, -1};
  for (int pick = 0; pick < op.k; ++pick) {
    Picked best = Nothing();
    for (int i = thread; i < chunks * op.k; i += kThreads) {
      const Picked mine = {candidates[i].score, candidates[i].id};
      if (Better(last, mine) && Better(mine, best)) best = mine;
    }
    last = BestOfBlock(best, picked);
    if (thread == 0) op.best[row * op.k + pick] = {last.score, last.id};
  }
}

}  // namespace

cudaError_t Enqueue(const RankOp& op, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(RankChunks(op.count)), static_cast<unsigned>(op.rows));
  const cudaError_t error = Launch(RankChunkKernel, op, grid, kThreads, stream);
  if (error != cudaSuccess) return error;
  return Launch(RankRowKernel, op, dim3(static_cast<unsigned>(op.rows)), kThreads, stream);
}

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
