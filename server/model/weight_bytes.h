// How much memory the weights of a head will take, told before they are read.
#pragma once

#include <cstdint>

#include "server/checkpoint/checkpoint.h"
#include "server/kernels/packed_matrix.h"

namespace aerie {

// Bytes of its matrices in `element`, and of its norms and biases. The embedding is not among them:
// it is read where it lies, in pages that the kernel can let go of.
int64_t WeightBytes(const Checkpoint& checkpoint, WeightElement element);

}  // namespace aerie
