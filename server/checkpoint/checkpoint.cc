#include "server/checkpoint/checkpoint.h"

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status_macros.h"
#include "server/checkpoint/mapped_file.h"
#include "server/checkpoint/vocabulary_map.h"
#include "server/checkpoint/weights_folder.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;

constexpr char kEmbeddingSuffix[] = "embed_tokens.weight";
constexpr size_t kMaxConfigBytes = 4'000'000;

absl::StatusOr<std::string> ReadConfig(const std::string& folder) {
  return ReadSmallFile(fs::path(folder) / "config.json", kMaxConfigBytes);
}

// The last part of the path that is not empty: "/models/head/" is called "head".
std::string FolderName(const std::string& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return path.has_filename() ? path.filename() : path.parent_path().filename();
}

bool IsSuffixOfPath(absl::string_view name) {
  return name == kEmbeddingSuffix || absl::EndsWith(name, absl::StrCat(".", kEmbeddingSuffix));
}

// The target's embedding. Complains when there is not exactly one.
std::optional<TensorSpan> FindEmbedding(const WeightsFolder& weights, const std::string& key,
                                        Complaints& complaints) {
  std::vector<TensorSpan> found;
  for (const TensorSpan& tensor : weights.tensors()) {
    if (key.empty() ? IsSuffixOfPath(tensor.name) : tensor.name == key) found.push_back(tensor);
  }
  if (found.size() == 1) return found[0];
  const std::string wanted = key.empty() ? absl::StrCat("*.", kEmbeddingSuffix) : key;
  complaints.Add(absl::StrCat(
      "the target has ", found.size(), " tensors named ", wanted,
      found.empty() ? ""
                    : absl::StrCat(" (",
                                   absl::StrJoin(found, ", ",
                                                 [](std::string* out, const TensorSpan& tensor) {
                                                   absl::StrAppend(out, tensor.name);
                                                 }),
                                   ")"),
      "; expected one; name the token embedding with --embedding-key"));
  return std::nullopt;
}

void CheckEmbedding(const TensorSpan& embedding, const TargetSpec& target, int64_t width,
                    Complaints& complaints) {
  const bool is_float = embedding.type == TensorType::kF32 || embedding.type == TensorType::kF16 ||
                        embedding.type == TensorType::kBF16;
  if (is_float && embedding.shape == std::vector<int64_t>{target.vocab_size, width}) return;
  complaints.Add(absl::StrCat(
      "the target's embedding ", embedding.name, " is ", embedding.Describe(),
      "; expected F32, F16 or BF16 [", target.vocab_size, ", ", width,
      "] by the target's config.json and the head; use an unquantised copy of the right target"));
}

}  // namespace

std::vector<Setting> Checkpoint::Settings() const {
  std::vector<Setting> settings = spec.Settings();
  settings.push_back({"embedding", embedding.Describe(), embedding_source});
  settings.push_back(
      {"output_matrix", tensors.at(HeadTensor::kOutput).Describe(), "tensor lm_head.weight"});
  return settings;
}

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& drafter_folder,
                                          const std::string& target_folder,
                                          const CheckpointOptions& options) {
  AERIE_ASSIGN_OR_RETURN(WeightsFolder opened, WeightsFolder::Open(drafter_folder));
  AERIE_ASSIGN_OR_RETURN(const std::string config, ReadConfig(drafter_folder));
  AERIE_ASSIGN_OR_RETURN(const std::string target_config, ReadConfig(target_folder));

  Checkpoint checkpoint;
  checkpoint.head_weights = std::make_shared<const WeightsFolder>(std::move(opened));
  const WeightsFolder& weights = *checkpoint.head_weights;
  checkpoint.name = options.name.empty() ? FolderName(drafter_folder) : options.name;
  const std::string subject =
      absl::StrCat("drafter ", drafter_folder, " with target ", target_folder);

  Complaints complaints;
  const auto target = ReadTargetSpec(target_config, complaints);
  if (!target.has_value()) return complaints.ToStatus(subject);
  checkpoint.target = *target;
  checkpoint.spec = ResolveHeadSpec(config, weights.tensors(), *target, options.head, complaints);

  Complaints repeated;  // what ResolveHeadSpec() has said of the tensors already
  checkpoint.tensors = SortHeadTensors(weights.tensors(), repeated);
  const auto take = [&checkpoint](HeadTensor tensor) -> std::optional<TensorSpan> {
    auto node = checkpoint.tensors.extract(tensor);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  };
  const auto own_embedding = take(HeadTensor::kEmbedding);
  const auto d2t = take(HeadTensor::kDraftToTarget);
  const auto t2d = take(HeadTensor::kTargetToDraft);

  if (own_embedding.has_value()) {
    checkpoint.embedding = *own_embedding;
    checkpoint.embedding_source = absl::StrCat("tensor ", own_embedding->name);
  } else {
    AERIE_ASSIGN_OR_RETURN(WeightsFolder borrowed, WeightsFolder::Open(target_folder));
    checkpoint.target_weights = std::make_shared<const WeightsFolder>(std::move(borrowed));
    const auto found = FindEmbedding(*checkpoint.target_weights, options.embedding_key, complaints);
    if (found.has_value()) {
      // The head's width, unless that is in doubt: then the target's, with which it has been
      // compared.
      CheckEmbedding(*found, *target, target->hidden_size, complaints);
      checkpoint.embedding = *found;
      checkpoint.embedding_source = absl::StrCat("target's tensor ", found->name);
    }
  }
  // Reading the map relies on shapes, which are only sound when nothing was complained of.
  if (complaints.empty()) {
    checkpoint.draft_to_target =
        ReadVocabularyMap(d2t ? &*d2t : nullptr, t2d ? &*t2d : nullptr,
                          checkpoint.spec.draft_vocab_size.value, target->vocab_size, complaints);
  }
  if (!complaints.empty()) return complaints.ToStatus(subject);
  checkpoint.version = weights.Digest();
  return checkpoint;
}

}  // namespace aerie
