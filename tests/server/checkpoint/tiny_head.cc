#include "tests/server/checkpoint/tiny_head.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/strings/str_cat.h"
#include "common/check.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

TensorToWrite Random(std::string name, std::vector<int64_t> shape, uint32_t seed) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return {std::move(name), "F32", std::move(shape), BytesOf(Noise(count, seed))};
}

std::string With(const std::string& object, absl::string_view key, absl::string_view value) {
  Json json = Json::parse(object);
  json[std::string(key)] = Json::parse(std::string(value));
  return json.dump();
}

void WriteFolder(const std::string& folder, const std::string& config,
                 const std::vector<TensorToWrite>& tensors) {
  fs::create_directories(folder);
  AERIE_CHECK(WriteFile(folder + "/config.json", config));
  AERIE_CHECK(WriteFile(folder + "/model.safetensors", Safetensors(tensors)));
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  path_ = fs::temp_directory_path() / "aerie-test-XXXXXX";
  AERIE_CHECK(mkdtemp(path_.data()) != nullptr);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::path(absl::string_view name) const {
  return name.empty() ? path_ : absl::StrCat(path_, "/", name);
}

std::vector<float> Noise(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);  // its numbers are the same everywhere; those of distributions are not
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(engine() >> 8) / (1 << 23) - 1.0f;
  return values;
}

std::vector<int32_t> TinyTargetIds() { return {0, 1, 3, 4, 9, 17, 18, 25, 38, 39}; }

TinyHead::TinyHead() {
  config = Json{
      {"architectures", {"LlamaForCausalLMEagle3"}},
      {"hidden_size", kHidden},
      {"intermediate_size", kIntermediate},
      {"num_attention_heads", kHeads},
      {"num_key_value_heads", kKvHeads},
      {"head_dim", kHeadDim},
      {"vocab_size", kVocab},
      {"draft_vocab_size", kDraftVocab},
      {"rms_norm_eps",
       1e-5}}.dump();
  target_config =
      Json{{"num_hidden_layers", kLayers}, {"hidden_size", kHidden}, {"vocab_size", kVocab}}.dump();
  constexpr int64_t kQuery = kHeads * kHeadDim, kKv = kKvHeads * kHeadDim;
  tensors = {
      Random("fc.weight", {kHidden, kCaptures * kHidden}, 1),
      Random("midlayer.input_layernorm.weight", {kHidden}, 2),
      Random("midlayer.hidden_norm.weight", {kHidden}, 3),
      Random("midlayer.self_attn.q_proj.weight", {kQuery, 2 * kHidden}, 4),
      Random("midlayer.self_attn.k_proj.weight", {kKv, 2 * kHidden}, 5),
      Random("midlayer.self_attn.v_proj.weight", {kKv, 2 * kHidden}, 6),
      Random("midlayer.self_attn.o_proj.weight", {kHidden, kQuery}, 7),
      Random("midlayer.post_attention_layernorm.weight", {kHidden}, 8),
      Random("midlayer.mlp.gate_proj.weight", {kIntermediate, kHidden}, 9),
      Random("midlayer.mlp.up_proj.weight", {kIntermediate, kHidden}, 10),
      Random("midlayer.mlp.down_proj.weight", {kHidden, kIntermediate}, 11),
      Random("norm.weight", {kHidden}, 12),
      Random("lm_head.weight", {kDraftVocab, kHidden}, 13),
      {"d2t", "I64", {kDraftVocab}, ""},
      {"t2d", "BOOL", {kVocab}, ""},
  };
  std::vector<int64_t> offsets;
  for (const int32_t id : TinyTargetIds())
    offsets.push_back(id - static_cast<int64_t>(offsets.size()));
  SetD2t(offsets);
  SetT2d(TinyTargetIds());
  target_tensors = {Random("model.embed_tokens.weight", {kVocab, kHidden}, 14),
                    Random("model.norm.weight", {kHidden}, 15)};
}

void TinyHead::Set(absl::string_view key, absl::string_view value) {
  config = With(config, key, value);
}

void TinyHead::SetTarget(absl::string_view key, absl::string_view value) {
  target_config = With(target_config, key, value);
}

TensorToWrite& TinyHead::Tensor(absl::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [name](const auto& t) { return t.name == name; });
  AERIE_CHECK(found != tensors.end()) << std::string(name);
  return *found;
}

void TinyHead::Remove(absl::string_view name) {
  tensors.erase(tensors.begin() + (&Tensor(name) - tensors.data()));
}

void TinyHead::SetD2t(const std::vector<int64_t>& offsets) {
  Tensor("d2t") = {"d2t", "I64", {static_cast<int64_t>(offsets.size())}, BytesOf(offsets)};
}

void TinyHead::SetT2d(const std::vector<int32_t>& members) {
  std::string mask(kVocab, '\0');
  for (const int32_t id : members) mask[id] = '\1';
  Tensor("t2d") = {"t2d", "BOOL", {kVocab}, mask};
}

void TinyHead::Write(const TemporaryFolder& folder) const {
  WriteFolder(folder.path("head"), config, tensors);
  WriteFolder(folder.path("target"), target_config, target_tensors);
}

}  // namespace aerie
