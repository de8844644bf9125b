#include "server/checkpoint/weights_folder.h"

#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/safetensors/json_check.h"
#include "common/safetensors/mapped_file.h"
#include "common/status_macros.h"
#include "server/checkpoint/digest.h"
#include "server/checkpoint/shard_index.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;

constexpr char kSingle[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr size_t kMaxIndexBytes = 64'000'000;

bool IsFile(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Why there is nothing to read, and what to do about it.
absl::Status NoWeights(const std::string& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) {
    return absl::NotFoundError(absl::StrCat(
        folder, " is no folder; expected one with config.json and ", kSingle, "; check the path"));
  }
  for (const char* pickled : {"pytorch_model.bin", "model.bin", "pytorch_model.bin.index.json"}) {
    if (!IsFile(fs::path(folder) / pickled)) continue;
    return absl::NotFoundError(absl::StrCat(
        folder, " holds ", pickled, " but no ", kSingle,
        "; expected safetensors, since a pickled file can run code when it is read; convert it "
        "once where it is "
        "trusted: python3 -c \"import torch; from safetensors.torch import save_file; "
        "save_file({k: "
        "v.contiguous() for k, v in torch.load('pytorch_model.bin', map_location='cpu', "
        "weights_only=True).items()}, '",
        kSingle, "')\""));
  }
  return absl::NotFoundError(absl::StrCat(folder, " holds no weights; expected ", kSingle, " or ",
                                          kIndex, "; fetch the model again or check the path"));
}

absl::StatusOr<std::vector<SafetensorsFile>> OpenShards(const std::string& folder) {
  const std::string index_path = fs::path(folder) / kIndex;
  AERIE_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(index_path, kMaxIndexBytes));
  AERIE_ASSIGN_OR_RETURN(const auto shard_of, ParseShardIndex(text, index_path));
  std::set<std::string> names;
  for (const auto& [tensor, shard] : shard_of) names.insert(shard);

  std::vector<SafetensorsFile> files;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    const std::string path = fs::path(folder) / name;
    if (!IsFile(path)) {
      return BadIndex(index_path, absl::StrCat("the shard ", Quoted(name), " is not there"),
                      "every shard beside the index");
    }
    AERIE_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
    for (const TensorSpan& tensor : file.tensors()) {
      const auto entry = shard_of.find(tensor.name);
      if (entry == shard_of.end() || entry->second != name) {
        return BadIndex(index_path,
                        absl::StrCat("tensor ", Quoted(tensor.name), " of shard ", Quoted(name),
                                     " is not entered for it"),
                        "an entry for every tensor of a shard");
      }
      seen.insert(tensor.name);
    }
    files.push_back(std::move(file));
  }
  for (const auto& [tensor, shard] : shard_of) {
    if (!seen.contains(tensor)) {
      return BadIndex(
          index_path,
          absl::StrCat("tensor ", Quoted(tensor), " is not in its shard ", Quoted(shard)),
          "it there");
    }
  }
  return files;
}

}  // namespace

WeightsFolder::WeightsFolder(std::vector<SafetensorsFile> files) : files_(std::move(files)) {
  for (const SafetensorsFile& file : files_) {
    tensors_.insert(tensors_.end(), file.tensors().begin(), file.tensors().end());
  }
}

absl::StatusOr<WeightsFolder> WeightsFolder::Open(const std::string& folder) {
  const fs::path single = fs::path(folder) / kSingle;
  const bool has_index = IsFile(fs::path(folder) / kIndex);
  if (IsFile(single)) {
    // Nothing says which of the two is meant, and they may differ.
    if (has_index) {
      return absl::InvalidArgumentError(
          absl::StrCat(folder, " holds both ", kSingle, " and ", kIndex,
                       "; expected one of them; remove the one that is not meant"));
    }
    AERIE_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(single));
    std::vector<SafetensorsFile> files;
    files.push_back(std::move(file));
    return WeightsFolder(std::move(files));
  }
  if (!has_index) return NoWeights(folder);
  AERIE_ASSIGN_OR_RETURN(std::vector<SafetensorsFile> files, OpenShards(folder));
  return WeightsFolder(std::move(files));
}

std::string WeightsFolder::Digest() const {
  uint64_t digest = 0;
  constexpr size_t kPiece = size_t{64} << 20;
  for (const SafetensorsFile& file : files_) {
    for (size_t at = 0; at < file.bytes().size(); at += kPiece) {
      const std::string_view piece = file.bytes().substr(at, kPiece);
      digest = Fingerprint64(piece, digest);
      ReleasePages(piece);
    }
  }
  return absl::StrFormat("%016x", digest);
}

}  // namespace aerie
