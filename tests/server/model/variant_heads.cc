#include "tests/server/model/variant_heads.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/model/eagle3_model.h"

namespace aerie {
namespace {

constexpr int64_t kWidth = int64_t{TinyHead::kCaptures} * TinyHead::kHidden;
constexpr char kAttention[] = "midlayer.self_attn.";

void Put(TinyHead& head, const std::string& name, std::vector<int64_t> shape, uint32_t seed) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  head.tensors.push_back({name, "F32", std::move(shape), BytesOf(Noise(count, seed))});
}

void AddNorms(TinyHead& head) {
  Put(head, absl::StrCat(kAttention, "q_norm.weight"), {TinyHead::kHeadDim}, 50);
  Put(head, absl::StrCat(kAttention, "k_norm.weight"), {TinyHead::kHeadDim}, 51);
}

// Layers 1 and 2, and layer 0 spelled as they are.
void AddLayers(TinyHead& head) {
  uint32_t seed = 60;
  const std::vector<TensorToWrite> first = head.tensors;
  for (TensorToWrite& tensor : head.tensors) {
    if (tensor.name.starts_with("midlayer.")) tensor.name.replace(0, 8, "layers.0");
  }
  for (const char* layer : {"layers.1", "layers.2"}) {
    for (const TensorToWrite& tensor : first) {
      if (!tensor.name.starts_with("midlayer.") || tensor.name.ends_with("hidden_norm.weight"))
        continue;
      std::vector<int64_t> shape = tensor.shape;
      // Only the first layer takes the embedding beside the hidden state.
      for (const char* name : {"q_proj.weight", "k_proj.weight", "v_proj.weight"}) {
        if (tensor.name.ends_with(name)) shape[1] = TinyHead::kHidden;
      }
      Put(head, absl::StrCat(layer, tensor.name.substr(8)), std::move(shape), ++seed);
    }
  }
  head.Set("num_hidden_layers", "3");
}

// 4 heads: nope 3, rope 2, v 7; queries by way of 8 numbers, keys and values of 9.
void MakeLatent(TinyHead& head) {
  const std::string at = kAttention;
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    head.Remove(at + name + ".weight");
  Put(head, at + "q_a_proj.weight", {8, 24}, 70);
  Put(head, at + "q_a_layernorm.weight", {8}, 71);
  Put(head, at + "q_b_proj.weight", {20, 8}, 72);
  Put(head, at + "kv_a_proj_with_mqa.weight", {11, 24}, 73);
  Put(head, at + "kv_a_layernorm.weight", {9}, 74);
  Put(head, at + "kv_b_proj.weight", {40, 9}, 75);
  Put(head, at + "o_proj.weight", {12, 28}, 76);
  head.Set("head_dim", "null");
  for (const auto& [key, value] : {std::pair{"q_lora_rank", "8"},
                                   {"kv_lora_rank", "9"},
                                   {"qk_nope_head_dim", "3"},
                                   {"qk_rope_head_dim", "2"},
                                   {"v_head_dim", "7"},
                                   {"num_key_value_heads", "4"}}) {
    head.Set(key, value);
  }
}

void MakeDynamic(TinyHead& head) {
  head.Set("max_position_embeddings", "16");
  head.Set("rope_scaling", R"({"rope_type": "dynamic", "factor": 4.0})");
}

}  // namespace

std::vector<HeadKind> SteadyHeadKinds() {
  return {{"Layers", AddLayers}, {"Latent", MakeLatent}, {"NormedQueries", AddNorms}};
}

HeadKind DynamicHead() { return {"Dynamic", MakeDynamic}; }

std::vector<HeadKind> HeadKinds() {
  std::vector<HeadKind> kinds = SteadyHeadKinds();
  kinds.push_back(DynamicHead());
  return kinds;
}

std::unique_ptr<DraftModel> LoadVariant(const HeadKind& kind, int32_t page_rows) {
  TinyHead head;
  kind.change(head);
  const TemporaryFolder folder;
  head.Write(folder);
  const auto checkpoint = LoadCheckpoint(folder.path("head"), folder.path("target"));
  if (!checkpoint.ok()) {
    ADD_FAILURE() << checkpoint.status();
    return nullptr;
  }
  auto model = LoadEagle3Model(
      *checkpoint, {.dtype = ComputeDType::kFloat32, .threads = 1, .kv_page_rows = page_rows});
  if (!model.ok()) {
    ADD_FAILURE() << model.status();
    return nullptr;
  }
  return *std::move(model);
}

NoiseRows::NoiseRows(uint32_t seed, int64_t count) {
  bytes = BytesOf(Noise(count * kWidth, seed));
  sequence.aux = *HiddenRows::Create(DType::kF32, count, kWidth, bytes);
  for (int64_t i = 0; i <= count; ++i)
    sequence.tokens.push_back(static_cast<int32_t>((i * i + seed) % TinyHead::kVocab));
}

}  // namespace aerie
