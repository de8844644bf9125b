#include "common/safetensors/safetensors.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"

namespace aerie {

int64_t TensorSpan::elements() const {
  return static_cast<int64_t>(bytes.size()) / TensorTypeSize(type);
}

std::string TensorSpan::Describe() const {
  return absl::StrCat(TensorTypeName(type), " [", absl::StrJoin(shape, ", "), "]");
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  AERIE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  const absl::StatusOr<std::vector<TensorEntry>> entries =
      ParseSafetensorsHeader(file.bytes(), file.bytes().size());
  if (!entries.ok()) {
    return absl::Status(entries.status().code(),
                        absl::StrCat(path, ": ", entries.status().message()));
  }
  std::vector<TensorSpan> tensors;
  tensors.reserve(entries->size());
  for (const TensorEntry& entry : *entries) {
    tensors.push_back({entry.name, entry.type, entry.shape,
                       file.bytes().substr(entry.begin, entry.end - entry.begin)});
  }
  return SafetensorsFile(path, std::move(file), std::move(tensors));
}

const TensorSpan* SafetensorsFile::Find(absl::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [name](const TensorSpan& tensor) { return tensor.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

}  // namespace aerie
