#include "tests/common/safetensors/safetensors_writer.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace aerie {

std::string RawSafetensors(absl::string_view header, std::string_view data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(uint64_t{header.size()} >> (8 * i)));
  file.append(header.data(), header.size());
  file.append(data);
  return file;
}

std::string Safetensors(const std::vector<TensorToWrite>& tensors) {
  std::string data;
  std::vector<std::string> entries;
  for (const TensorToWrite& tensor : tensors) {
    const size_t begin = data.size();
    data += tensor.bytes;
    entries.push_back(absl::StrCat("\"", tensor.name, "\":{\"dtype\":\"", tensor.type,
                                   "\",\"shape\":[", absl::StrJoin(tensor.shape, ","),
                                   "],\"data_offsets\":[", begin, ",", data.size(), "]}"));
  }
  std::string header = absl::StrCat("{", absl::StrJoin(entries, ","), "}");
  header.resize((header.size() + 7) / 8 * 8, ' ');  // aligns the data, as other writers do
  return RawSafetensors(header, data);
}

bool WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return file.flush().good();
}

}  // namespace aerie
