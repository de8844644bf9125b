#include "common/dtype.h"

#include "common/check.h"

namespace aerie {

size_t DTypeSize(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
  }
  AERIE_CHECK(false) << "no such dtype";
}

const char* DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float32";
    case DType::kF16:
      return "float16";
    case DType::kBF16:
      return "bfloat16";
  }
  AERIE_CHECK(false) << "no such dtype";
}

}  // namespace aerie
