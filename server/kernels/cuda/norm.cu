// Norms of rows, alone and as what goes into the first layer. A block takes a row.
#include "server/kernels/cuda/enqueue.cuh"
#include "server/kernels/cuda/lanes.cuh"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {
namespace {

constexpr int kThreads = 256;

// By which a row is multiplied in front of its weights.
__device__ float NormScale(const float* row, int32_t width, float epsilon, float* shared) {
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kThreads)
    sum = fmaf(row[i], row[i], sum);
  return rsqrtf(BlockSum<kThreads>(sum, shared) / static_cast<float>(width) + epsilon);
}

__global__ void __launch_bounds__(kThreads) NormKernel(NormOp op) {
  __shared__ float shared[kThreads / kWarp];
  const int64_t row = static_cast<int>(blockIdx.x);
  const float* const in = op.in + row * op.in_stride;
  float* const out = op.out + row * op.out_stride;
  // A thread writes what it alone has read, so `out` may be `in`.
  const float scale = NormScale(in, op.width, op.epsilon, shared);
  for (int i = static_cast<int>(threadIdx.x); i < op.width; i += kThreads)
    out[i] = in[i] * scale * op.weight[i];
}

__global__ void __launch_bounds__(kThreads) PrepareKernel(PrepareOp op) {
  __shared__ float shared[kThreads / kWarp];
  const int64_t row = static_cast<int>(blockIdx.x), width = op.width;
  float* const x = op.x + row * 2 * width;
  if (blockIdx.y == 0) {
    const float* const embedding = op.embeddings + row * width;
    const float scale = NormScale(embedding, op.width, op.epsilon, shared);
    for (int i = static_cast<int>(threadIdx.x); i < op.width; i += kThreads)
      x[i] = embedding[i] * scale * op.embedding_norm[i];
    return;
  }
  const float* const hidden =
      row < op.fused_rows ? op.fused + row * width : op.states + (row - op.fused_rows) * width;
  float* const residual = op.residual + row * width;
  const float scale = NormScale(hidden, op.width, op.epsilon, shared);
  for (int i = static_cast<int>(threadIdx.x); i < op.width; i += kThreads) {
    const float normed = hidden[i] * scale * op.hidden_norm[i];
    x[width + i] = normed;
    residual[i] = op.normed_residual ? normed : hidden[i];
  }
}

}  // namespace

cudaError_t Enqueue(const NormOp& op, cudaStream_t stream) {
  return Launch(NormKernel, op, dim3(static_cast<unsigned>(op.rows)), kThreads, stream);
}

cudaError_t Enqueue(const PrepareOp& op, cudaStream_t stream) {
  return Launch(PrepareKernel, op, dim3(static_cast<unsigned>(op.rows), 2), kThreads, stream);
}

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
