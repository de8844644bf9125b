// From the mapped tensors of a checkpoint to weights in the compute dtype.
//
// What is held while loading is the weights and one block of a few MiB: a tensor is converted block
// by block into memory that the next block uses again, since having the system clear new memory
// takes longer than filling it. The pages of the file are let go behind it. Throws what LibTorch
// throws.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/status/status.h"
#include "server/checkpoint/checkpoint.h"
#include "server/kernels/packed_matrix.h"
#include "server/kernels/thread_pool.h"
#include "server/model/tensor_view.h"

namespace aerie {

// Faults are kept until status() is asked; a tensor with one is worth nothing.
class WeightLoader {
 public:
  // The checkpoint is not copied. `threads`: that pack a block.
  WeightLoader(const Checkpoint& checkpoint, at::ScalarType dtype, int threads = 1)
      : checkpoint_(checkpoint), dtype_(dtype), pool_(threads) {}

  at::ScalarType dtype() const { return dtype_; }
  const HeadSpec& spec() const { return checkpoint_.spec; }
  bool has(const TensorKey& key) const { return checkpoint_.tensors.contains(key); }

  // The tensor in the compute dtype, fp8 multiplied by its scales.
  at::Tensor Matrix(const TensorKey& key) { return Stack({key}); }
  // Tensors of equal width on top of each other, as one.
  at::Tensor Stack(std::initializer_list<TensorKey> keys);
  // The same as own products read them, in `element` whatever the compute dtype.
  PackedMatrix Packed(std::initializer_list<TensorKey> keys, WeightElement element);
  // Of `first` and `second`, equal in shape, for kSwiGlu.
  PackedMatrix PackedPairs(const TensorKey& first, const TensorKey& second, WeightElement element);
  // The elements of norms or biases behind each other, as float32.
  std::vector<float> Vector(std::initializer_list<TensorKey> keys);
  // float32, whatever the compute dtype: norms are computed in it.
  at::Tensor Norm(const TensorKey& key);
  // In the type of its file, and left in it: only rows that are looked up are ever copied.
  MappedRows Embedding();

  // Of all that was loaded, the embedding included.
  int64_t bytes() const { return bytes_; }
  // FAILED_PRECONDITION naming the first tensor that holds NaN or an infinite value.
  const absl::Status& status() const { return status_; }

 private:
  void Convert(const TensorKey& key, at::Tensor out);
  void Pack(const TensorKey& key, int64_t first_row, ChannelOrder order, PackedMatrix& out);
  // `block` as float32, in memory that is used again.
  at::Tensor FloatsOf(const TensorSpan& block);
  // Whether every number is finite, and stays so when it is rounded to `type`.
  void CheckFinite(const TensorSpan& span, const at::Tensor& block, at::ScalarType type);

  const Checkpoint& checkpoint_;
  at::ScalarType dtype_;
  ThreadPool pool_;
  at::Tensor floats_;
  int64_t bytes_ = 0;
  absl::Status status_;
};

}  // namespace aerie
