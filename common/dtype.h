// Element types of tensors on the wire and in checkpoints.
#pragma once

#include <cstddef>

namespace aerie {

enum class DType {
  kF32,
  kF16,
  kBF16,
};

// Bytes of one element.
size_t DTypeSize(DType dtype);

// "float32", "float16", "bfloat16".
const char* DTypeName(DType dtype);

}  // namespace aerie
