// Reads safetensors files without trusting them: every field is checked before it is used, and what
// is returned points into the mapped file (nothing is copied).
//
// A file is 8 bytes of little-endian header length, a JSON header, then the data. Offsets in the
// header count from the start of the data, not of the file. Numbers are little-endian and may lie
// unaligned.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/safetensors/mapped_file.h"

namespace aerie {

// All element types that the format names. Knowing one here does not mean that a loader takes it.
enum class TensorType {
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kU16,
  kI16,
  kF16,
  kBF16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
};

// Bytes of one element.
int64_t TensorTypeSize(TensorType type);
// As in the file: "BF16".
absl::string_view TensorTypeName(TensorType type);

// One entry of a header.
struct TensorEntry {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;   // empty for a scalar
  uint64_t begin = 0, end = 0;  // bytes of the file, counted from its start: [begin, end)
};

// One tensor and its bytes, row-major. Valid as long as the file that it came from.
struct TensorSpan {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
  std::string_view bytes;

  int64_t elements() const;
  // "BF16 [576, 1728]".
  std::string Describe() const;
};

// Checks the header of a file whose length is `file_size` and whose first bytes are `head` (the
// whole header must lie within). Entries come in the order of their data. INVALID_ARGUMENT: header
// length against the file and a cap of 100 MB; JSON that is malformed, nested too deep, has a key
// twice or a field of another type; an unknown element type; ranges that are inverted, overlap,
// leave a hole, differ from the shape or do not end with the file.
absl::StatusOr<std::vector<TensorEntry>> ParseSafetensorsHeader(std::string_view head,
                                                                uint64_t file_size);

// An open file. Moving it leaves the spans valid. Immutable: threads may share it. The file must
// not be changed while it is open.
class SafetensorsFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED or INVALID_ARGUMENT, with the path.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // All bytes of the file.
  std::string_view bytes() const { return file_.bytes(); }
  // In the order of their data.
  absl::Span<const TensorSpan> tensors() const { return tensors_; }
  // nullptr when there is no such tensor.
  const TensorSpan* Find(absl::string_view name) const;

 private:
  SafetensorsFile(std::string path, MappedFile file, std::vector<TensorSpan> tensors)
      : path_(std::move(path)), file_(std::move(file)), tensors_(std::move(tensors)) {}

  std::string path_;
  MappedFile file_;
  std::vector<TensorSpan> tensors_;
};

}  // namespace aerie
