// Loading: options, weights, the choice of dtype and threads, and a trial row.
#include "server/model/eagle3_model.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/headeronly/version.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "server/checkpoint/fc_digest.h"
#include "server/model/compute_choice.h"
#include "server/model/cpu_budget.h"
#include "server/model/cuda_choice.h"
#include "server/model/cuda_net.h"
#include "server/model/eagle3_pass.h"
#include "server/model/packed_net.h"
#include "server/model/torch_net.h"
#include "server/model/torch_status.h"

namespace aerie {
namespace {

CpuBudget AskedThreads(int32_t asked) { return {asked, "flag --threads"}; }

CpuBudget ChooseThreads(int32_t asked, int64_t step_bytes) {
  if (asked > 0) return AskedThreads(asked);
  CpuBudget budget = ThreadsFor(step_bytes, FindCpuBudget());
  budget.source = absl::StrCat("auto: ", budget.source);
  return budget;
}

DrafterSpec MakeSpec(const Checkpoint& checkpoint, const HeadNet& net, const ModelOptions& options,
                     const ComputeChoice& choice, const CpuBudget& threads) {
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
  spec.fc_digest = FcDigest(checkpoint);
  spec.settings = checkpoint.Settings();
  spec.settings.push_back({"device", options.device, "flag --device"});
  spec.settings.push_back(choice.dtype);
  spec.settings.push_back({"compute_path", net.name(), choice.path_source});
  spec.settings.push_back({"threads", absl::StrCat(threads.threads), threads.source});
  return spec;
}

struct LoadedNet {
  std::unique_ptr<HeadNet> net;
  CpuBudget threads;
};

absl::StatusOr<LoadedNet> LoadNet(const Checkpoint& checkpoint, const ComputeChoice& choice,
                                  std::optional<int32_t> cuda_device, int32_t asked_threads) {
  LoadedNet loaded;
  if (cuda_device.has_value()) {
    AERIE_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, OpenCudaDevice(*cuda_device));
    AERIE_ASSIGN_OR_RETURN(loaded.net,
                           CudaNet::Load(checkpoint, choice.device_element, std::move(device)));
    loaded.threads = {1, "flag --device: the device computes"};
  } else if (choice.packed) {
    const bool asked = asked_threads > 0;
    loaded.threads = asked ? AskedThreads(asked_threads) : FindCpuBudget();
    // Packing gains by every CPU, however small the drafter.
    AERIE_ASSIGN_OR_RETURN(auto net,
                           PackedNet::Load(checkpoint, choice.element, loaded.threads.threads));
    net->StartThreads(loaded.threads.threads,
                      asked ? PackedNet::ThreadUse::kAll : PackedNet::ThreadUse::kByWork);
    if (!asked) {
      loaded.threads.source = absl::StrCat("auto: ", loaded.threads.source,
                                           "; a pass uses one for each 32 MiB that it reads and "
                                           "for as many products of a weight and a row's number");
    }
    loaded.net = std::move(net);
  } else {
    const bool full = choice.element == WeightElement::kFloat32;
    AERIE_ASSIGN_OR_RETURN(Eagle3Net equations,
                           Eagle3Net::Load(checkpoint, full ? at::kFloat : at::kBFloat16));
    auto net = std::make_unique<TorchNet>(std::move(equations), checkpoint);
    loaded.threads = ChooseThreads(asked_threads, net->step_bytes());
    net->set_threads(loaded.threads.threads);
    loaded.net = std::move(net);
  }
  return loaded;
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
  AERIE_RETURN_IF_ERROR(CudaDeviceNumber(device).status());
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
  AERIE_ASSIGN_OR_RETURN(const std::optional<int32_t> cuda_device,
                         CudaDeviceNumber(options.device));
  AERIE_ASSIGN_OR_RETURN(const ComputeChoice choice,
                         cuda_device.has_value()
                             ? ChooseCudaCompute(checkpoint.spec, options.dtype)
                             : ChooseCompute(checkpoint.spec, options.dtype, ThisCpu()));
  using Result = absl::StatusOr<std::unique_ptr<Eagle3Model>>;
  AERIE_ASSIGN_OR_RETURN(
      std::unique_ptr<Eagle3Model> model, CatchTorch("loading the weights", [&]() -> Result {
        const c10::InferenceMode no_gradients;
        AERIE_ASSIGN_OR_RETURN(LoadedNet net,
                               LoadNet(checkpoint, choice, cuda_device, options.threads));
        AERIE_ASSIGN_OR_RETURN(
            KvPages kv,
            KvPages::Reserve(net.net->kv_shape(), options.kv_memory_bytes, options.kv_page_rows));
        DrafterSpec spec = MakeSpec(checkpoint, *net.net, options, choice, net.threads);
        return std::make_unique<Eagle3Model>(std::move(spec), std::move(net.net), std::move(kv));
      }));
  AERIE_RETURN_IF_ERROR(SelfTest(*model));
  return std::unique_ptr<DraftModel>(std::move(model));
}

std::string LibTorchVersion() { return TORCH_VERSION; }

}  // namespace aerie
