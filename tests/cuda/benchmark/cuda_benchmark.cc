// aerie-cuda-benchmark: how long passes of a drafter take on a CUDA device, beside how long the
// same bytes take to copy there, as JSON on stdout.
//
// What a reader would get wrong: bandwidth is that of a copy, which reads and writes; every floor
// is made of it, so it is a little high where a device reads faster than it copies.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/inspect/checkpoint_flags.h"
#include "server/model/cuda_choice.h"
#include "tests/cuda/benchmark/device_probe.h"
#include "tests/cuda/benchmark/pass_times.h"

namespace aerie {
namespace {

struct Flags {
  std::string drafter, target, device = "cuda:0", dtype = "bfloat16";
  PassTimesOptions passes;
  int64_t kv_memory = int64_t{2} << 30, copy_bytes = int64_t{1} << 30, product_size = 8192;
  double seconds = 120.0;
  CheckpointOptions checkpoint;
};

const std::map<std::string, DeviceElement> kElements = {{"float32", DeviceElement::kFloat32},
                                                        {"bfloat16", DeviceElement::kBFloat16},
                                                        {"int8", DeviceElement::kInt8},
                                                        {"fp8", DeviceElement::kFp8}};

absl::StatusOr<std::unique_ptr<Device>> Open(const std::string& name) {
  if (name == "emulated") return emulated::OpenDevice(0);
  AERIE_ASSIGN_OR_RETURN(const std::optional<int32_t> number, CudaDeviceNumber(name));
  if (!number.has_value()) {
    return absl::InvalidArgumentError(
        "--device is \"cpu\"; expected cuda:N or emulated; aerie-step-benchmark measures the CPU");
  }
  return OpenCudaDevice(*number);
}

absl::StatusOr<Drafter> Load(const Checkpoint& checkpoint, const Flags& flags) {
  AERIE_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, Open(flags.device));
  AERIE_ASSIGN_OR_RETURN(std::unique_ptr<CudaNet> net,
                         CudaNet::Load(checkpoint, kElements.at(flags.dtype), std::move(device)));
  AERIE_ASSIGN_OR_RETURN(KvPages kv, KvPages::Reserve(net->kv_shape(), flags.kv_memory, 16));
  DrafterSpec spec;
  spec.name = checkpoint.name;
  spec.wiring = checkpoint.spec.wiring.value;
  spec.target_hidden_size = checkpoint.target.hidden_size;
  spec.vocab_size = checkpoint.target.vocab_size;
  spec.draft_vocab_size = checkpoint.spec.draft_vocab_size.value;
  spec.hidden_size = checkpoint.spec.hidden_size.value;
  Drafter drafter = {.net = net.get()};
  drafter.model = std::make_unique<Eagle3Model>(std::move(spec), std::move(net), std::move(kv));
  return drafter;
}

int64_t StepBytes(const HeadWork& work, const std::string& dtype) {
  if (dtype == "float32") return 4 * work.step_elements;
  if (dtype == "bfloat16") return 2 * work.step_elements;
  return work.step_elements + 4 * work.step_channels;
}

absl::Status Run(const Flags& flags) {
  Budget budget(flags.seconds);
  AERIE_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                         LoadCheckpoint(flags.drafter, flags.target, flags.checkpoint));
  // A stream of its own; its memory is given back before the drafter comes.
  nlohmann::json out;
  const HeadWork work = WorkOf(checkpoint);
  const int64_t step_bytes = StepBytes(work, flags.dtype);
  double bytes_per_second = 0.0, product_rate = 0.0;
  {
    AERIE_ASSIGN_OR_RETURN(const std::unique_ptr<Device> probe, Open(flags.device));
    const DeviceTraits& traits = probe->traits();
    bytes_per_second =
        static_cast<double>(flags.copy_bytes) / CopySeconds(*probe, flags.copy_bytes);
    product_rate = ProductRate(*probe, flags.product_size);
    out = {{"device", traits.name},
           {"capability", absl::StrCat(traits.major, ".", traits.minor)},
           {"memory_bytes", traits.memory_bytes},
           {"bandwidth_gb_s", bytes_per_second * 1e-9},
           {"copy_of_step_bytes_us", CopySeconds(*probe, step_bytes) * 1e6},
           {"product_tflops", product_rate * 1e-12}};
  }
  const auto start = std::chrono::steady_clock::now();
  AERIE_ASSIGN_OR_RETURN(Drafter drafter, Load(checkpoint, flags));
  const std::chrono::duration<double> load = std::chrono::steady_clock::now() - start;
  out["drafter"] = checkpoint.name;
  out["dtype"] = flags.dtype;
  out["compute_path"] = drafter.net->name();
  out["load_seconds"] = load.count();
  out["step_bytes"] = step_bytes;
  out["steps"] = StepTimes(drafter, step_bytes, bytes_per_second, flags.passes, budget);
  out["extends"] = ExtendTimes(drafter, work, product_rate, flags.passes, budget);
  out["left_out"] = budget.left_out();
  std::cout << out.dump(1) << std::endl;
  return absl::OkStatus();
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--drafter", flags.drafter, "folder of the head")->required();
  app.add_option("--target", flags.target, "folder of its target")->required();
  app.add_option("--device", flags.device,
                 "cuda:N, or emulated: the same kernels thread by thread on the CPU, whose times "
                 "mean nothing")
      ->capture_default_str();
  std::vector<std::string> names;
  for (const auto& [name, element] : kElements) names.push_back(name);
  app.add_option("--dtype", flags.dtype, "of the weights")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--contexts", flags.passes.contexts,
                 "rows in front of a draft step, comma-separated")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--batches", flags.passes.batches, "sequences of a draft step, comma-separated")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--extends", flags.passes.extends, "rows of an extend, 1..512, comma-separated")
      ->delimiter(',')
      ->check(CLI::Range(1, 512))
      ->capture_default_str();
  app.add_option("--rounds", flags.passes.rounds, "turns with graphs and without")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--repeats", flags.passes.repeats, "steps of one turn")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds,
                 "when they are over nothing more is begun; what is left out is named")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--kv-memory", flags.kv_memory, "bytes of draft KV on the device")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--copy-bytes", flags.copy_bytes,
                 "moved by the copy that bandwidth is measured with; many times its caches")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 36))
      ->capture_default_str();
  app.add_option("--product-size", flags.product_size,
                 "channels and inputs of the large product; its rows are half as many")
      ->check(CLI::Range(2, 1 << 16))
      ->capture_default_str();
  AddCheckpointFlags(app, flags.checkpoint);
}

}  // namespace
}  // namespace aerie

int main(int argc, char** argv) {
  CLI::App app("Times the passes of a drafter on a CUDA device and copies there; prints JSON.",
               "aerie-cuda-benchmark");
  aerie::Flags flags;
  aerie::AddFlags(app, flags);
  CLI11_PARSE(app, argc, argv);
  std::string trouble;
  try {
    const absl::Status status = aerie::Run(flags);
    if (status.ok()) return 0;
    trouble = std::string(status.message());
  } catch (const std::exception& error) {  // of the device, or of LibTorch while loading
    trouble = error.what();
  }
  std::cerr << "aerie-cuda-benchmark: " << trouble << "\n";
  return 1;
}
