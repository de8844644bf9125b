// Rotation of queries and keys, and the way of keys and values into their pages. A block takes one
// head of one row; the heads of queries come first, then those of keys, then those of values.
#include "server/kernels/cuda/enqueue.cuh"
#include "server/kernels/cuda/lanes.cuh"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {
namespace {

constexpr int kThreads = 128;

// One head in shared memory, normed and rotated in place. All threads together.
__device__ void TurnHead(const TurnOp& op, const float* norm, int64_t row, float* head,
                         float* shared) {
  const int thread = static_cast<int>(threadIdx.x), dim = op.pages.head_dim;
  if (norm != nullptr) {
    float sum = 0.0f;
    for (int i = thread; i < dim; i += kThreads) sum = fmaf(head[i], head[i], sum);
    const float scale =
        rsqrtf(BlockSum<kThreads>(sum, shared) / static_cast<float>(dim) + op.epsilon);
    for (int i = thread; i < dim; i += kThreads) head[i] = head[i] * scale * norm[i];
  }
  __syncthreads();  // a pair may be of two threads so far
  const float* const cos = op.cos + row * op.pairs;
  const float* const sin = op.sin + row * op.pairs;
  for (int pair = thread; pair < op.pairs; pair += kThreads) {
    const int one = op.interleaved ? 2 * pair : pair;
    const int other = op.interleaved ? 2 * pair + 1 : op.pairs + pair;
    const float a = head[one], b = head[other];
    head[one] = a * cos[pair] - b * sin[pair];
    head[other] = b * cos[pair] + a * sin[pair];
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) TurnKernel(TurnOp op) {
  __shared__ float head[kMaxHeadDim];
  __shared__ float shared[kThreads / kWarp];
  const int thread = static_cast<int>(threadIdx.x), dim = op.pages.head_dim;
  const int64_t i = static_cast<int>(blockIdx.x);
  int number = static_cast<int>(blockIdx.y);
  if (number < op.heads) {
    if (i >= op.chosen) return;
    float* const query = op.queries + i * op.query_stride + number * dim;
    for (int d = thread; d < dim; d += kThreads) head[d] = query[d];
    const int64_t row = op.chosen_rows == nullptr ? i : op.chosen_rows[i];
    TurnHead(op, op.query_norm, row, head, shared);
    for (int d = thread; d < dim; d += kThreads) query[d] = head[d];
    return;
  }
  number -= op.heads;
  const bool is_key = number < op.pages.kv_heads;
  const int kv_head = is_key ? number : number - op.pages.kv_heads;
  const float* const from = (is_key ? op.keys : op.values) + i * op.kv_stride + kv_head * dim;
  for (int d = thread; d < dim; d += kThreads) head[d] = from[d];
  if (is_key) TurnHead(op, op.key_norm, i, head, shared);

  const int64_t bytes = op.pages.element == DeviceElement::kFloat32 ? 4 : 2;
  std::byte* const to = op.pages.store + op.write_page[i] * op.pages.page_bytes +
                        (is_key ? op.pages.keys_at : op.pages.values_at) +
                        (int64_t{kv_head} * op.pages.page_rows + op.write_at[i]) * dim * bytes;
  for (int d = thread; d < dim; d += kThreads) {
    if (op.pages.element == DeviceElement::kFloat32) {
      reinterpret_cast<float*>(to)[d] = head[d];
    } else {
      reinterpret_cast<uint16_t*>(to)[d] = ToBf16(head[d]);
    }
  }
}

}  // namespace

cudaError_t Enqueue(const TurnOp& op, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(op.rows),
                  static_cast<unsigned>(op.heads + 2 * op.pages.kv_heads));
  return Launch(TurnKernel, op, grid, kThreads, stream);
}

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
