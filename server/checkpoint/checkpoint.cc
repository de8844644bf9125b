#include "server/checkpoint/checkpoint.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/safetensors/mapped_file.h"
#include "common/status_macros.h"
#include "server/checkpoint/borrowed_tensors.h"
#include "server/checkpoint/head_tensors.h"
#include "server/checkpoint/vocabulary_map.h"
#include "server/checkpoint/weights_folder.h"
#include "server/checkpoint/wiring_file.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConfigBytes = 4'000'000;
// With the guard's profile: a few hundred kilobytes, more with many captures.
constexpr size_t kMaxWiringBytes = 16'000'000;

absl::StatusOr<std::string> ReadConfig(const std::string& folder) {
  return ReadSmallFile(fs::path(folder) / "config.json", kMaxConfigBytes);
}

// The last part of the path that is not empty: "/models/head/" is called "head".
std::string FolderName(const std::string& folder) {
  const fs::path path = fs::absolute(folder).lexically_normal();
  return path.has_filename() ? path.filename() : path.parent_path().filename();
}

// One head on its way from files to a checkpoint.
class Reader {
 public:
  Reader(const std::string& drafter_folder, const std::string& target_folder,
         const CheckpointOptions& options, Inspection& out)
      : drafter_folder_(drafter_folder),
        target_folder_(target_folder),
        options_(options),
        out_(out),
        checkpoint_(out.checkpoint),
        complaints_(out.complaints) {}

  // An error: a file that cannot be read. What is wrong with readable ones is a complaint.
  absl::Status Read() {
    AERIE_ASSIGN_OR_RETURN(WeightsFolder opened, WeightsFolder::Open(drafter_folder_));
    checkpoint_.head_weights = std::make_shared<const WeightsFolder>(std::move(opened));
    const WeightsFolder& weights = *checkpoint_.head_weights;
    out_.tensors.assign(weights.tensors().begin(), weights.tensors().end());
    checkpoint_.name = options_.name.empty() ? FolderName(drafter_folder_) : options_.name;
    AERIE_ASSIGN_OR_RETURN(const std::string config, ReadConfig(drafter_folder_));
    AERIE_RETURN_IF_ERROR(ReadTarget());
    AERIE_ASSIGN_OR_RETURN(const std::optional<MeasuredWiring> measured, ReadWiringFile());

    HeadTensors tensors = SortHeadTensors(weights.tensors(), complaints_);
    ResolvedHead head =
        ResolveHead(config, tensors, checkpoint_.target, measured, options_.head, complaints_);
    checkpoint_.spec = std::move(head.spec);
    checkpoint_.wiring_claim = std::move(head.wiring);
    out_.resolved = true;
    AERIE_RETURN_IF_ERROR(FindEmbedding(tensors));
    AERIE_RETURN_IF_ERROR(FindOutput(tensors));
    ReadMap(tensors);
    checkpoint_.tensors = std::move(tensors.weights);
    for (const HeadTensor apart :
         {HeadTensor::kEmbedding, HeadTensor::kDraftToTarget, HeadTensor::kTargetToDraft}) {
      checkpoint_.tensors.erase(apart);
    }
    checkpoint_.scales = std::move(tensors.scales);
    checkpoint_.warnings = complaints_.warnings();
    if (complaints_.empty()) Digest();
    return absl::OkStatus();
  }

 private:
  const std::string& Digest() {
    if (checkpoint_.version.empty()) checkpoint_.version = checkpoint_.head_weights->Digest();
    return checkpoint_.version;
  }

  absl::Status ReadTarget() {
    if (target_folder_.empty()) return absl::OkStatus();
    AERIE_ASSIGN_OR_RETURN(const std::string config, ReadConfig(target_folder_));
    checkpoint_.target = ReadTargetSpec(config, complaints_).value_or(TargetSpec());
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<MeasuredWiring>> ReadWiringFile() {
    const fs::path path = fs::path(drafter_folder_) / kWiringFile;
    std::error_code ignored;
    if (options_.ignore_wiring_file || !fs::exists(path, ignored)) return std::nullopt;
    AERIE_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMaxWiringBytes));
    std::optional<WiringMeasurement> measurement =
        ReadWiringMeasurement(text, Digest(), complaints_);
    if (!measurement.has_value()) return std::nullopt;
    checkpoint_.guard_profile = std::move(measurement->guard);
    return MeasuredWiringOf(*measurement);
  }

  // The target's weights, opened once something of them is wanted.
  absl::StatusOr<const WeightsFolder*> TargetWeights() {
    if (checkpoint_.target_weights == nullptr) {
      AERIE_ASSIGN_OR_RETURN(WeightsFolder opened, WeightsFolder::Open(target_folder_));
      checkpoint_.target_weights = std::make_shared<const WeightsFolder>(std::move(opened));
    }
    return checkpoint_.target_weights.get();
  }

  // A target's rows are as wide as the target, so only a head of its width can use them.
  bool MayBorrow(absl::string_view name) {
    const int32_t own = checkpoint_.spec.hidden_size.value;
    const int32_t width = checkpoint_.spec.target_hidden_size.value;
    if (own == width || own == 0 || width == 0) return checkpoint_.target.known();
    complaints_.Add(absl::StrCat(
        "the head is ", own, " wide (", checkpoint_.spec.hidden_size.source, "), its target ",
        width, ", and it has no ", name,
        " of its own; expected one in the file, since the target's does not fit; check which head "
        "and which target are given"));
    return false;
  }

  absl::Status FindEmbedding(const HeadTensors& tensors) {
    if (tensors.stored.count(HeadTensor::kEmbedding) != 0) {
      if (const TensorSpan* const own = tensors.Find(HeadTensor::kEmbedding)) {
        checkpoint_.embedding = *own;
        checkpoint_.embedding_source = absl::StrCat("tensor ", own->name);
      }
      return absl::OkStatus();
    }
    checkpoint_.embedding_source = "the target's, which is not given";
    if (!MayBorrow("embed_tokens.weight")) return absl::OkStatus();
    AERIE_ASSIGN_OR_RETURN(const WeightsFolder* const weights, TargetWeights());
    auto found = BorrowEmbedding(*weights, checkpoint_.target, options_.embedding_key, complaints_);
    if (found.has_value()) {
      checkpoint_.embedding = std::move(found->tensor);
      checkpoint_.embedding_source = std::move(found->source);
    }
    return absl::OkStatus();
  }

  // Which matrix scores the draft vocabulary; kept in `tensors` wherever it comes from.
  absl::Status FindOutput(HeadTensors& tensors) {
    if (const TensorSpan* const own = tensors.Find(HeadTensor::kOutput)) {
      checkpoint_.output_source = absl::StrCat("tensor ", own->name);
      return absl::OkStatus();
    }
    checkpoint_.output_source = "the target's, which is not given";
    if (tensors.stored.count(HeadTensor::kOutput) != 0) return absl::OkStatus();
    if (checkpoint_.spec.tied_output.value) {
      checkpoint_.output_source = absl::StrCat(checkpoint_.embedding_source, ", tied by ",
                                               checkpoint_.spec.tied_output.source);
      if (!checkpoint_.embedding.name.empty()) {
        tensors.weights.emplace(HeadTensor::kOutput, checkpoint_.embedding);
      }
      return absl::OkStatus();
    }
    if (!MayBorrow("lm_head.weight")) return absl::OkStatus();
    AERIE_ASSIGN_OR_RETURN(const WeightsFolder* const weights, TargetWeights());
    auto found = BorrowOutput(*weights, checkpoint_.target, options_.embedding_key, complaints_);
    if (found.has_value()) {
      checkpoint_.output_source = std::move(found->source);
      tensors.weights.emplace(HeadTensor::kOutput, std::move(found->tensor));
    }
    return absl::OkStatus();
  }

  void ReadMap(const HeadTensors& tensors) {
    const int64_t draft = checkpoint_.spec.draft_vocab_size.value;
    const int64_t vocab = checkpoint_.spec.vocab_size.value;
    const TensorSpan* const d2t = tensors.Find(HeadTensor::kDraftToTarget);
    const TensorSpan* const t2d = tensors.Find(HeadTensor::kTargetToDraft);
    // Reading relies on shapes; of others there has been a complaint. One that was left out as
    // well.
    const bool d2t_fits = d2t == nullptr ? tensors.stored.count(HeadTensor::kDraftToTarget) == 0
                                         : d2t->shape[0] == draft;
    const bool t2d_fits = t2d == nullptr || t2d->shape[0] == vocab;
    if (draft < 1 || vocab < 1 || draft > vocab || !d2t_fits || !t2d_fits) return;
    checkpoint_.draft_to_target = ReadVocabularyMap(d2t, t2d, draft, vocab, complaints_);
  }

  const std::string& drafter_folder_;
  const std::string& target_folder_;
  const CheckpointOptions& options_;
  Inspection& out_;
  Checkpoint& checkpoint_;
  Complaints& complaints_;
};

}  // namespace

std::vector<Setting> Checkpoint::Settings() const {
  std::vector<Setting> settings = spec.Settings();
  const auto describe = [](const TensorSpan* tensor) {
    return tensor == nullptr || tensor->name.empty() ? std::string("unknown") : tensor->Describe();
  };
  const auto output = tensors.find(HeadTensor::kOutput);
  settings.push_back({"embedding", describe(&embedding), embedding_source});
  settings.push_back({"output_matrix",
                      describe(output == tensors.end() ? nullptr : &output->second),
                      output_source});
  return settings;
}

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& drafter_folder,
                                          const std::string& target_folder,
                                          const CheckpointOptions& options) {
  if (target_folder.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("drafter ", drafter_folder,
                     " is given without a target; expected the target's folder; name "
                     "it"));
  }
  Inspection inspection = InspectCheckpoint(drafter_folder, target_folder, options);
  AERIE_RETURN_IF_ERROR(inspection.unreadable);
  AERIE_RETURN_IF_ERROR(inspection.complaints.ToStatus(
      absl::StrCat("drafter ", drafter_folder, " with target ", target_folder)));
  return std::move(inspection.checkpoint);
}

Inspection InspectCheckpoint(const std::string& drafter_folder, const std::string& target_folder,
                             const CheckpointOptions& options) {
  Inspection inspection;
  inspection.unreadable = Reader(drafter_folder, target_folder, options, inspection).Read();
  return inspection;
}

}  // namespace aerie
