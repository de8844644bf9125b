// Loading: options, weights, the choice of dtype and threads, and a trial row.
#include "server/model/eagle3_model.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <torch/headeronly/version.h>

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "server/model/cpu_budget.h"
#include "server/model/eagle3_pass.h"
#include "server/model/torch_status.h"

namespace aerie {
namespace {

struct DTypeChoice {
  at::ScalarType type;
  Setting setting;
};

DTypeChoice ChooseDType(ComputeDType asked) {
  if (asked == ComputeDType::kFloat32)
    return {at::kFloat, {"compute_dtype", "float32", "flag --dtype"}};
  if (asked == ComputeDType::kBFloat16)
    return {at::kBFloat16, {"compute_dtype", "bfloat16", "flag --dtype"}};
  if (const auto flag = BFloat16Flag(); flag.has_value()) {
    return {
        at::kBFloat16,
        {"compute_dtype", "bfloat16", absl::StrCat("auto: this CPU multiplies it (", *flag, ")")}};
  }
  return {at::kFloat,
          {"compute_dtype", "float32",
           "auto: this CPU has no bfloat16 products (avx512_bf16 or amx_bf16)"}};
}

CpuBudget ChooseThreads(int32_t asked, int64_t step_bytes) {
  if (asked > 0) return {asked, "flag --threads"};
  CpuBudget budget = ThreadsFor(step_bytes, FindCpuBudget());
  budget.source = absl::StrCat("auto: ", budget.source);
  return budget;
}

DrafterSpec MakeSpec(const Checkpoint& checkpoint, const Eagle3Net& net,
                     const ModelOptions& options, const Setting& dtype, const CpuBudget& threads) {
  DrafterSpec spec;
  spec.name = checkpoint.name;
  spec.version = checkpoint.version;
  spec.wiring = checkpoint.spec.wiring.value;
  spec.target_num_layers = checkpoint.target.num_layers;
  spec.target_hidden_size = checkpoint.target.hidden_size;
  spec.vocab_size = checkpoint.target.vocab_size;
  spec.draft_vocab_size = checkpoint.spec.draft_vocab_size.value;
  spec.hidden_size = checkpoint.spec.hidden_size.value;
  spec.weight_bytes = net.weight_bytes();
  spec.settings = checkpoint.Settings();
  spec.settings.push_back({"device", options.device, "flag --device"});
  spec.settings.push_back(dtype);
  spec.settings.push_back({"threads", absl::StrCat(threads.threads), threads.source});
  return spec;
}

// One extend row and one draft row. What comes out is worth nothing, but a head that gives no
// numbers, or tokens that are none, shows here and not in a client's first call.
absl::Status SelfTest(Eagle3Model& model) {
  const DrafterSpec& spec = model.spec();
  const int64_t width = int64_t{spec.wiring.size()} * spec.target_hidden_size;
  std::vector<float> values(width);
  for (int64_t i = 0; i < width; ++i) values[i] = std::sin(static_cast<float>(i));
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()),
                               values.size() * sizeof(float));
  AERIE_ASSIGN_OR_RETURN(const HiddenRows aux, HiddenRows::Create(DType::kF32, 1, width, bytes));
  constexpr SlotId kSlot = 0;
  const PageId pages[] = {0, 1};
  int32_t token = 0;
  const int32_t root = -1;
  for (const bool extend : {true, false}) {
    StepSequence sequence{.slot = kSlot, .pages = pages, .length = extend ? 0 : 1};
    sequence.tokens = {&token, 1};
    sequence.outputs = Outputs::kLast;
    if (extend) {
      sequence.aux = aux;
    } else {
      sequence.parents = {&root, 1};
    }
    const auto outputs = model.Step({&sequence, 1}, 1);
    if (!outputs.ok() || !outputs->at(0).rows.at(0).finite) {
      const std::string why =
          outputs.ok() ? "its scores are NaN or infinite" : std::string(outputs.status().message());
      return absl::FailedPreconditionError(absl::StrCat(
          "drafter ", spec.name, " failed its trial row (", why,
          "); expected finite scores; fetch the weights again, or load them with --dtype=float32"));
    }
    token = outputs->at(0).rows[0].top.at(0).token;
    AERIE_CHECK(token >= 0 && token < spec.vocab_size) << "the vocabulary map was checked at load";
  }
  model.ReleaseSlot(kSlot);
  return absl::OkStatus();
}

}  // namespace

absl::Status ModelOptions::Validate() const {
  if (device != "cpu") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--device is \"", device, "\"; expected \"cpu\"; this build drafts on the CPU only"));
  }
  if (threads < 0 || threads > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads is ", threads,
                     "; expected 1..1024, or 0 to find it; set it to CPUs you may use"));
  }
  if (kv_memory_bytes < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--kv-memory is ", kv_memory_bytes,
                     "; expected bytes above 0; name the memory that draft KV may take"));
  }
  if (kv_page_rows < 1 || kv_page_rows > 1024) {
    return absl::InvalidArgumentError(absl::StrCat("--kv-page-rows is ", kv_page_rows,
                                                   "; expected 1..1024; set it to 16, or less "
                                                   "where many short sequences share rows"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DraftModel>> LoadEagle3Model(const Checkpoint& checkpoint,
                                                            const ModelOptions& options) {
  AERIE_RETURN_IF_ERROR(options.Validate());
  const DTypeChoice dtype = ChooseDType(options.dtype);
  using Result = absl::StatusOr<std::unique_ptr<Eagle3Model>>;
  AERIE_ASSIGN_OR_RETURN(
      std::unique_ptr<Eagle3Model> model, CatchTorch("loading the weights", [&]() -> Result {
        const c10::InferenceMode no_gradients;
        AERIE_ASSIGN_OR_RETURN(Eagle3Net net, Eagle3Net::Load(checkpoint, dtype.type));
        const CpuBudget threads = ChooseThreads(options.threads, net.step_bytes());
        AERIE_ASSIGN_OR_RETURN(KvPages kv, KvPages::Reserve(net.kv_shape(), options.kv_memory_bytes,
                                                            options.kv_page_rows));
        DrafterSpec spec = MakeSpec(checkpoint, net, options, dtype.setting, threads);
        return std::make_unique<Eagle3Model>(std::move(spec), std::move(net), std::move(kv),
                                             checkpoint.draft_to_target, threads.threads);
      }));
  AERIE_RETURN_IF_ERROR(SelfTest(*model));
  return std::unique_ptr<DraftModel>(std::move(model));
}

std::string LibTorchVersion() { return TORCH_VERSION; }

}  // namespace aerie
