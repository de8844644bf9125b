// aerie-head-logits: drafts once from recorded rows and writes the logits of every depth, for
// comparison with other implementations. It goes through the server's own model, batch by batch as
// the engine would.
//
// Input: `aux` [rows, captures x hidden] and `tokens` [rows] I32, the token that FOLLOWS each row's
// state. Output: `logits` [k, draft vocabulary] F32 and `tokens` [k] I32 in target ids, the most
// likely one fed back each time.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/checkpoint/checkpoint.h"
#include "server/inspect/checkpoint_flags.h"
#include "server/model/eagle3_model.h"
#include "server/model/eagle3_model_internal.h"
#include "tests/server/checkpoint/safetensors_writer.h"

namespace aerie {
namespace {

struct Flags {
  std::string drafter, target, input, output;
  int32_t k = 5;
  ComputeDType dtype = ComputeDType::kFloat32;
  CheckpointOptions checkpoint;
};

struct Recording {
  std::vector<int32_t> tokens;
  HiddenRows aux;
};

absl::StatusOr<Recording> ReadRecording(const SafetensorsFile& file, int64_t width, int32_t vocab) {
  const TensorSpan* const aux = file.Find("aux");
  const TensorSpan* const tokens = file.Find("tokens");
  if (aux == nullptr || tokens == nullptr || aux->shape.size() != 2 || aux->shape[1] != width ||
      tokens->type != TensorType::kI32 || tokens->shape != std::vector<int64_t>{aux->shape[0]} ||
      tokens->shape[0] < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), " holds aux ", aux ? aux->Describe() : "missing", " and tokens ",
                     tokens ? tokens->Describe() : "missing", "; expected aux [rows, ", width,
                     "] and tokens I32 [rows], at least one row; record them again"));
  }
  const std::map<TensorType, DType> types = {{TensorType::kF32, DType::kF32},
                                             {TensorType::kF16, DType::kF16},
                                             {TensorType::kBF16, DType::kBF16}};
  const auto type = types.find(aux->type);
  if (type == types.end()) {
    return absl::InvalidArgumentError(absl::StrCat(file.path(), " holds aux ", aux->Describe(),
                                                   "; expected F32, F16 or BF16; convert it"));
  }
  Recording recording;
  recording.tokens.resize(tokens->shape[0]);
  std::memcpy(recording.tokens.data(), tokens->bytes.data(), tokens->bytes.size());
  for (const int32_t token : recording.tokens) {
    if (token < 0 || token >= vocab) {
      return absl::InvalidArgumentError(absl::StrCat(file.path(), " holds token ", token,
                                                     "; expected 0..", vocab - 1,
                                                     "; give the target that was recorded"));
    }
  }
  AERIE_ASSIGN_OR_RETURN(recording.aux,
                         HiddenRows::Create(type->second, aux->shape[0], width, aux->bytes));
  return recording;
}

absl::Status Run(const Flags& flags) {
  AERIE_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                         LoadCheckpoint(flags.drafter, flags.target, flags.checkpoint));
  AERIE_ASSIGN_OR_RETURN(const auto model, LoadEagle3Model(checkpoint, {.dtype = flags.dtype}));
  const DrafterSpec& spec = model->spec();
  AERIE_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(flags.input));
  AERIE_ASSIGN_OR_RETURN(
      const Recording recording,
      ReadRecording(file, int64_t{spec.wiring.size()} * spec.target_hidden_size, spec.vocab_size));

  std::vector<float> logits;
  SetLogitsTap(*model, [&logits](size_t, absl::Span<const float> row) {
    logits.insert(logits.end(), row.begin(), row.end());
  });
  AERIE_ASSIGN_OR_RETURN(const SlotId slot, model->OpenSlot());
  std::vector<int32_t> drafted;
  constexpr int64_t kRowsPerPass = 512;
  const auto rows = static_cast<int64_t>(recording.tokens.size());
  for (int64_t first = 0; first < rows; first += kRowsPerPass) {
    const int64_t count = std::min(kRowsPerPass, rows - first);
    const StepSequence extend{slot, first, absl::MakeSpan(recording.tokens).subspan(first, count),
                              recording.aux.Slice(first, count),
                              /*wants_output=*/first + count == rows};
    AERIE_ASSIGN_OR_RETURN(const auto outputs, model->Step({&extend, 1}, 1));
    if (extend.wants_output) drafted.push_back(outputs[0].top[0].token);
  }
  while (static_cast<int32_t>(drafted.size()) < flags.k) {
    const int32_t token = drafted.back();
    const StepSequence draft{
        slot, model->SlotLength(slot), {&token, 1}, HiddenRows(), /*wants_output=*/true};
    AERIE_ASSIGN_OR_RETURN(const auto outputs, model->Step({&draft, 1}, 1));
    drafted.push_back(outputs[0].top[0].token);
  }
  const std::string bytes = Safetensors({
      {"logits", "F32", {flags.k, spec.draft_vocab_size}, BytesOf(logits)},
      {"tokens", "I32", {flags.k}, BytesOf(drafted)},
  });
  if (!WriteFile(flags.output, bytes)) {
    return absl::PermissionDeniedError(absl::StrCat(
        "cannot write ", flags.output, "; expected a place for a file; check the path"));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace aerie

int main(int argc, char** argv) {
  CLI::App app("Writes the logits of a draft from recorded rows.", "aerie-head-logits");
  aerie::Flags flags;
  const std::map<std::string, aerie::ComputeDType> dtypes = {
      {"auto", aerie::ComputeDType::kAuto},
      {"float32", aerie::ComputeDType::kFloat32},
      {"bfloat16", aerie::ComputeDType::kBFloat16}};
  app.add_option("--drafter", flags.drafter, "folder of the head: config.json and weights")
      ->required();
  app.add_option("--target", flags.target, "folder of its target")->required();
  app.add_option("--input", flags.input, "safetensors with aux and tokens")->required();
  app.add_option("--output", flags.output, "safetensors to write: logits and tokens")->required();
  app.add_option("--k", flags.k, "depths, 1..128")
      ->check(CLI::Range(1, 128))
      ->capture_default_str();
  std::string dtype = "float32";
  app.add_option("--dtype", dtype, "compute dtype: auto, float32 or bfloat16")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16"}))
      ->capture_default_str();
  aerie::AddCheckpointFlags(app, flags.checkpoint);
  CLI11_PARSE(app, argc, argv);
  flags.dtype = dtypes.at(dtype);
  if (const absl::Status status = aerie::Run(flags); !status.ok()) {
    std::cerr << "aerie-head-logits: " << status.message() << "\n";
    return 1;
  }
  return 0;
}
