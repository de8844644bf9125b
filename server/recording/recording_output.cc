#include "server/recording/recording_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace aerie {
namespace {

using Json = nlohmann::ordered_json;

Json ClaimAsJson(const TensorClaim& claim) {
  switch (claim.kind) {
    case TensorClaim::Kind::kFinalNorm:
      return {{"kind", "final_norm"}};
    case TensorClaim::Kind::kEmbedding:
      return {{"kind", "embedding"}};
    case TensorClaim::Kind::kBoundary:
      break;
  }
  return {{"kind", "boundary"}, {"boundary", claim.boundary}};
}

}  // namespace

std::string RecordingDescriptionAsJson(const RecordingDescription& description) {
  Json json = {{"format", kRecordingFormat},
               {"target",
                {{"id", description.target.id},
                 {"num_layers", description.target.num_layers},
                 {"hidden_size", description.target.hidden_size},
                 {"vocab_size", description.target.vocab_size}}},
               {"dtype", std::string(DTypeName(description.dtype))},
               {"source", description.source},
               {"tensors", Json::array()},
               {"samples", Json::array()}};
  for (const RecordedTensor& tensor : description.tensors) {
    json["tensors"].push_back(
        {{"name", tensor.name},
         {"label", tensor.label},
         {"claim", tensor.claim.has_value() ? ClaimAsJson(*tensor.claim) : Json()}});
  }
  for (const DescribedSample& sample : description.samples) {
    Json entry = {{"name", sample.name}, {"tokens", sample.tokens}};
    if (sample.prompt_tokens.has_value()) entry["prompt_tokens"] = *sample.prompt_tokens;
    entry["file"] = sample.file;
    json["samples"].push_back(std::move(entry));
  }
  // A target's name is what a client sent: it must not stop the recording.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status PrepareFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), S_IRWXU) == 0) return absl::OkStatus();
  if (errno != EEXIST) return CannotWriteError(folder);
  std::error_code error;
  bool empty = true, recording = false;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    empty = false;
    recording = recording || entry.path().filename() == kRecordingFile ||
                entry.path().extension() == kSpoolSuffix;
  }
  if (recording) {
    return absl::AlreadyExistsError(
        absl::StrCat(folder,
                     " holds a recording already; expected a new folder, so that none is mixed "
                     "with another; name another, or move the recording away"));
  }
  if (!error && empty && access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(folder,
                   " is there already, and is no empty folder that may be written to; expected a "
                   "new one; name another"));
}

absl::Status ReplaceFile(const std::string& path, absl::string_view text) {
  const std::string partial = absl::StrCat(path, ".", getpid());
  const int file =
      open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return CannotWriteError(partial);
  const bool whole = WriteAt(file, text.data(), text.size(), 0);
  if (close(file) == 0 && whole && std::rename(partial.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const absl::Status status = CannotWriteError(path);
  unlink(partial.c_str());
  return status;
}

absl::Status CannotWriteError(const std::string& path) {
  const int error = errno;
  return absl::UnavailableError(
      absl::StrCat(path, " cannot be written: ", std::strerror(error),
                   "; expected a folder that may be written to, on a disk with room; make some, "
                   "or record elsewhere"));
}

bool WriteAt(int file, const char* bytes, size_t count, int64_t offset) {
  size_t written = 0;
  while (written < count) {
    const ssize_t now =
        pwrite(file, bytes + written, count - written, offset + static_cast<int64_t>(written));
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) return false;
    written += static_cast<size_t>(now);
  }
  return true;
}

}  // namespace aerie
