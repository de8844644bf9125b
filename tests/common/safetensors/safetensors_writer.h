// Writes safetensors files: sound ones for tools, and pieces from which tests put damaged ones
// together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/string_view.h"

namespace aerie {

struct TensorToWrite {
  std::string name;
  std::string type;  // as in the file: "F32"
  std::vector<int64_t> shape;
  std::string bytes;
};

// The bytes of `values`, as they lie in memory.
template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// A whole file from any header text and any data: nothing is checked.
std::string RawSafetensors(absl::string_view header, std::string_view data);
// A sound file; the tensors lie in the order given.
std::string Safetensors(const std::vector<TensorToWrite>& tensors);

// False when the file could not be written.
bool WriteFile(const std::string& path, std::string_view bytes);

}  // namespace aerie
