#include "server/recording/session_spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "server/recording/recording_output.h"

namespace aerie {
namespace {

constexpr int64_t kChunkBytes = int64_t{1} << 20;
constexpr int64_t kTokenBytes = sizeof(int32_t);

const char* SafetensorsName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
  }
  AERIE_CHECK(false) << "no such dtype";
}

bool ReadAt(int file, char* bytes, size_t count, int64_t offset) {
  size_t read = 0;
  while (read < count) {
    const ssize_t now =
        pread(file, bytes + read, count - read, offset + static_cast<int64_t>(read));
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return false;
    read += static_cast<size_t>(now);
  }
  return true;
}

// Header of a file with the tokens first, then each tensor.
std::string HeaderOf(const SpoolShape& shape, const std::string& name, int64_t tokens) {
  nlohmann::ordered_json json;
  int64_t at = 0;
  const auto add = [&](const std::string& tensor, const char* dtype,
                       std::vector<int64_t> dimensions, int64_t bytes) {
    json[absl::StrCat(name, ".", tensor)] = {
        {"dtype", dtype}, {"shape", std::move(dimensions)}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  };
  add("tokens", "I32", {tokens}, tokens * kTokenBytes);
  for (const std::string& tensor : shape.tensors) {
    add(tensor, SafetensorsName(shape.dtype), {tokens, shape.hidden_size},
        tokens * shape.part_bytes());
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data are aligned
  std::string header(8, '\0');
  for (size_t i = 0; i < 8; ++i) {
    header[i] = static_cast<char>((static_cast<uint64_t>(text.size()) >> (8 * i)) & 0xff);
  }
  return header + text;
}

}  // namespace

int64_t SpoolShape::part_bytes() const {
  return hidden_size * static_cast<int64_t>(DTypeSize(dtype));
}

absl::StatusOr<std::unique_ptr<SessionSpool>> SessionSpool::Create(std::string path,
                                                                   const SpoolShape& shape) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return CannotWriteError(path);
  return std::unique_ptr<SessionSpool>(new SessionSpool(std::move(path), file, shape));
}

SessionSpool::~SessionSpool() {
  close(file_);
  unlink(path_.c_str());
}

absl::Status SessionSpool::Add(int64_t base, absl::Span<const int32_t> tokens,
                               std::string_view bytes) {
  const auto count = static_cast<int64_t>(tokens.size());
  AERIE_CHECK(static_cast<int64_t>(bytes.size()) == count * shape_.row_bytes()) << bytes.size();
  if (base > rows()) {
    return absl::FailedPreconditionError(
        absl::StrCat("rows from ", base, " on follow ", rows(),
                     " recorded ones; expected none to be missing; the session is left out"));
  }
  if (!WriteAt(file_, bytes.data(), bytes.size(), base * shape_.row_bytes())) {
    return CannotWriteError(path_);
  }
  tokens_.resize(static_cast<size_t>(base));
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  most_rows_ = std::max(most_rows_, rows());
  return absl::OkStatus();
}

std::optional<int64_t> SessionSpool::prompt_tokens() const {
  const int64_t tokens = prompt_rows_ - 1;
  if (tokens < 1 || tokens > sample_tokens()) return std::nullopt;
  return tokens;
}

int64_t SessionSpool::MostBytesBesideRows(const SpoolShape& shape, int64_t rows) {
  constexpr int64_t kMostOfAnEntry = 256;  // in the header
  return rows * kTokenBytes + kMostOfAnEntry * (static_cast<int64_t>(shape.tensors.size()) + 2);
}

absl::Status SessionSpool::WriteSample(const std::string& path, const std::string& name) const {
  const int64_t count = sample_tokens();
  AERIE_CHECK(count > 0);
  const int out = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (out < 0) return CannotWriteError(path);
  const absl::Cleanup closed = [out] { close(out); };
  const auto failed = [&path] {
    const absl::Status status = CannotWriteError(path);
    unlink(path.c_str());
    return status;
  };
  const std::string header = HeaderOf(shape_, name, count);
  const auto data = static_cast<int64_t>(header.size());
  // The token of position p + 1 came with row p.
  if (!WriteAt(out, header.data(), header.size(), 0) ||
      !WriteAt(out, reinterpret_cast<const char*>(tokens_.data()),
               static_cast<size_t>(count * kTokenBytes), data)) {
    return failed();
  }
  const int64_t states = data + count * kTokenBytes;
  const int64_t row_bytes = shape_.row_bytes(), part = shape_.part_bytes();
  const int64_t chunk = std::max<int64_t>(1, kChunkBytes / row_bytes);
  std::string rows, gathered;
  for (int64_t first = 0; first < count; first += chunk) {
    const int64_t some = std::min(chunk, count - first);
    rows.resize(static_cast<size_t>(some * row_bytes));
    // The state of position 1 is that of row 1.
    if (!ReadAt(file_, rows.data(), rows.size(), (first + 1) * row_bytes)) return failed();
    for (size_t t = 0; t < shape_.tensors.size(); ++t) {
      gathered.clear();
      for (int64_t row = 0; row < some; ++row) {
        gathered.append(rows, static_cast<size_t>(row * row_bytes + static_cast<int64_t>(t) * part),
                        static_cast<size_t>(part));
      }
      const int64_t tensor = states + static_cast<int64_t>(t) * count * part;
      if (!WriteAt(out, gathered.data(), gathered.size(), tensor + first * part)) return failed();
    }
  }
  return absl::OkStatus();
}

}  // namespace aerie
