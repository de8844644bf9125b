// aerie-head-logits: drafts once from recorded rows and writes the logits of every depth, for
// comparison with other implementations. It goes through the server's own model, batch by batch as
// the engine would.
//
// Input: `aux` [rows, captures x hidden] and `tokens` [rows] I32, the token that FOLLOWS each row's
// state. Output: `logits` [k, draft vocabulary] F32 and `tokens` [k] I32 in target ids, the most
// likely one fed back each time.
//
// With `tree_tokens` [n] and `tree_parents` [n] I32 in the input, also `tree_logits` [n, draft
// vocabulary]: those behind each node of that tree, which is drafted beside the chain. Node 0 is
// the root, the last row's token; node i + 1 is tree_tokens[i], and its parent precedes it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/draft_tree.h"
#include "common/status_macros.h"
#include "server/checkpoint/checkpoint.h"
#include "server/inspect/checkpoint_flags.h"
#include "server/model/eagle3_model.h"
#include "server/model/eagle3_model_internal.h"
#include "tests/common/safetensors/safetensors_writer.h"
#include "tests/tools/recorded_rows.h"

namespace aerie {
namespace {

struct Flags {
  std::string drafter, target, input, output;
  int32_t k = 5;
  ComputeDType dtype = ComputeDType::kFloat32;
  CheckpointOptions checkpoint;
};

// One sequence on pages of its own: extend rows, then any number of draft rows.
class Drafter {
 public:
  Drafter(DraftModel& model, std::vector<PageId> pages) : model_(model), pages_(std::move(pages)) {}

  // Room for so many rows.
  static absl::StatusOr<Drafter> Create(DraftModel& model, int64_t rows) {
    const KvStore& store = model.kv_store();
    const int64_t count = (rows + store.page_rows - 1) / store.page_rows;
    if (count > store.num_pages) {
      return absl::InvalidArgumentError(absl::StrCat(rows, " rows need ", count,
                                                     " pages of KV; expected at most ",
                                                     store.num_pages, "; record fewer rows"));
    }
    std::vector<PageId> pages(count);
    std::iota(pages.begin(), pages.end(), 0);
    return Drafter(model, std::move(pages));
  }

  // The most likely token behind the last row.
  absl::StatusOr<int32_t> Extend(const Recording& recording) {
    constexpr int64_t kRowsPerPass = 512;
    const auto rows = static_cast<int64_t>(recording.tokens.size());
    int32_t best = 0;
    while (length_ < rows) {
      const int64_t count = std::min(kRowsPerPass, rows - length_);
      StepSequence part{.slot = 0, .pages = pages_, .length = length_};
      part.tokens = absl::MakeSpan(recording.tokens).subspan(length_, count);
      part.aux = recording.aux.Slice(length_, count);
      part.outputs = length_ + count == rows ? Outputs::kLast : Outputs::kNone;
      AERIE_ASSIGN_OR_RETURN(const auto outputs, model_.Step({&part, 1}, 1));
      if (part.outputs == Outputs::kLast) best = outputs[0].rows[0].top.at(0).token;
      length_ += count;
    }
    return best;
  }

  // Draft rows, numbered from drafted() on; the most likely token behind the last of them.
  absl::StatusOr<int32_t> Draft(absl::Span<const int32_t> tokens,
                                absl::Span<const int32_t> parents) {
    StepSequence part{.slot = 0, .pages = pages_, .length = length_};
    part.tokens = tokens;
    part.parents = parents;
    part.outputs = Outputs::kEvery;
    AERIE_ASSIGN_OR_RETURN(const auto outputs, model_.Step({&part, 1}, 1));
    drafted_ += static_cast<int32_t>(tokens.size());
    return outputs[0].rows.back().top.at(0).token;
  }
  int32_t drafted() const { return drafted_; }

 private:
  DraftModel& model_;
  std::vector<PageId> pages_;
  int64_t length_ = 0;
  int32_t drafted_ = 0;
};

// Drafts the tree one level after the other. Returns its nodes in the order in which they came.
absl::StatusOr<std::vector<size_t>> DraftLevels(Drafter& drafter, const DraftTree& tree) {
  std::vector<size_t> order;
  std::vector<int32_t> row_of(tree.tokens.size() + 1, -1);  // of each node; the root has none
  std::vector<int32_t> depth_of(tree.tokens.size() + 1, 0);
  for (size_t i = 0; i < tree.tokens.size(); ++i) depth_of[i + 1] = depth_of[tree.parents[i]] + 1;
  for (int32_t depth = 1; order.size() < tree.tokens.size(); ++depth) {
    std::vector<int32_t> tokens, parents;
    for (size_t i = 0; i < tree.tokens.size(); ++i) {
      if (depth_of[i + 1] != depth) continue;
      row_of[i + 1] = drafter.drafted() + static_cast<int32_t>(tokens.size());
      tokens.push_back(tree.tokens[i]);
      parents.push_back(row_of[tree.parents[i]]);
      order.push_back(i);
    }
    AERIE_RETURN_IF_ERROR(drafter.Draft(tokens, parents).status());
  }
  return order;
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
  const auto rows = static_cast<int64_t>(recording.tokens.size());
  AERIE_ASSIGN_OR_RETURN(Drafter drafter,
                         Drafter::Create(*model, rows + flags.k + recording.tree.size()));
  std::vector<int32_t> drafted(1);
  AERIE_ASSIGN_OR_RETURN(drafted[0], drafter.Extend(recording));
  while (static_cast<int32_t>(drafted.size()) < flags.k) {
    const int32_t parent = drafter.drafted() - 1;
    AERIE_ASSIGN_OR_RETURN(const int32_t token, drafter.Draft({&drafted.back(), 1}, {&parent, 1}));
    drafted.push_back(token);
  }
  std::vector<TensorToWrite> written = {
      {"logits", "F32", {flags.k, spec.draft_vocab_size}, BytesOf(logits)},
      {"tokens", "I32", {flags.k}, BytesOf(drafted)},
  };
  if (!recording.tree.empty()) {
    logits.clear();
    AERIE_ASSIGN_OR_RETURN(const std::vector<size_t> order, DraftLevels(drafter, recording.tree));
    const auto vocab = static_cast<size_t>(spec.draft_vocab_size);
    std::vector<float> by_node(logits.size());
    for (size_t i = 0; i < order.size(); ++i)
      std::copy_n(logits.begin() + i * vocab, vocab, by_node.begin() + order[i] * vocab);
    written.push_back(
        {"tree_logits", "F32", {recording.tree.size(), spec.draft_vocab_size}, BytesOf(by_node)});
  }
  if (!WriteFile(flags.output, Safetensors(written))) {
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
      {"bfloat16", aerie::ComputeDType::kBFloat16},
      {"int8", aerie::ComputeDType::kInt8}};
  app.add_option("--drafter", flags.drafter, "folder of the head: config.json and weights")
      ->required();
  app.add_option("--target", flags.target, "folder of its target")->required();
  app.add_option("--input", flags.input, "safetensors with aux and tokens")->required();
  app.add_option("--output", flags.output, "safetensors to write: logits and tokens")->required();
  app.add_option("--k", flags.k, "depths, 1..128")
      ->check(CLI::Range(1, 128))
      ->capture_default_str();
  std::string dtype = "float32";
  app.add_option("--dtype", dtype, "compute dtype: auto, float32, bfloat16 or int8")
      ->check(CLI::IsMember({"auto", "float32", "bfloat16", "int8"}))
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
