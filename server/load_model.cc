#include "server/load_model.h"

#include <string>
#include <utility>

#include "common/log.h"
#include "common/status_macros.h"
#include "server/checkpoint/checkpoint.h"
#include "server/model/compute_choice.h"
#include "server/model/eagle3_model.h"
#include "server/model/weight_bytes.h"

namespace aerie {

namespace {

// What loading it takes of this machine's memory; on a device, the device says itself when it has
// no more.
absl::StatusOr<MemoryNeed> NeedOf(const Checkpoint& checkpoint, const ModelOptions& options) {
  AERIE_ASSIGN_OR_RETURN(const ComputeChoice choice,
                         ChooseCompute(checkpoint.spec, options.dtype, ThisCpu()));
  return MemoryNeed{.weights = WeightBytes(checkpoint, choice.element),
                    .draft_kv = options.kv_memory_bytes};
}

}  // namespace

absl::StatusOr<LoadedModel> LoadModel(const DrafterOptions& source, const Options& options,
                                      const MemoryCheck& check) {
  CheckpointOptions checkpoint_options;
  checkpoint_options.name = source.name;
  checkpoint_options.embedding_key = source.embedding_key;
  checkpoint_options.head = {.layer_ids = source.layer_ids,
                             .norm_before_residual = source.norm_before_residual,
                             .norm_output = source.norm_output,
                             .rope_theta = source.rope_theta,
                             .ignored_config_keys = source.ignored_config_keys};
  AERIE_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                         LoadCheckpoint(source.drafter, source.target, checkpoint_options));
  for (const std::string& warning : checkpoint.warnings) AERIE_LOG(warn, "drafter: {}", warning);

  ModelOptions model_options;
  model_options.device = options.compute.device;
  if (options.compute.dtype == "float32") model_options.dtype = ComputeDType::kFloat32;
  if (options.compute.dtype == "bfloat16") model_options.dtype = ComputeDType::kBFloat16;
  if (options.compute.dtype == "int8") model_options.dtype = ComputeDType::kInt8;
  if (options.compute.dtype == "fp8") model_options.dtype = ComputeDType::kFp8;
  model_options.threads = options.compute.threads;
  model_options.kv_memory_bytes = options.kv.memory_bytes;
  model_options.kv_page_rows = options.kv.page_rows;
  if (options.compute.device == "cpu") {
    AERIE_ASSIGN_OR_RETURN(const MemoryNeed need, NeedOf(checkpoint, model_options));
    AERIE_RETURN_IF_ERROR(check(need));
  }
  AERIE_ASSIGN_OR_RETURN(std::unique_ptr<DraftModel> model,
                         LoadEagle3Model(checkpoint, model_options));
  for (const Setting& setting : model->spec().settings) {
    AERIE_LOG(info, "drafter {} = {} ({})", setting.name, setting.value, setting.source);
  }
  return LoadedModel{std::move(model), checkpoint.guard_profile};
}

}  // namespace aerie
