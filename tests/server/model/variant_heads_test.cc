// Heads of other kinds than the demo's: what a slot drafts must not depend on how its rows came.
// That the numbers are right is judged elsewhere, against a reference; here is what one run through
// a prompt cannot see. Layers in front of the last compute every row, under a mask, so a wrong one
// shows where rows come in pieces.
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/eagle3_model.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/server/model/demo_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

constexpr int32_t kDepth = 4;
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

std::unique_ptr<DraftModel> Load(const std::function<void(TinyHead&)>& change) {
  TinyHead head;
  change(head);
  const TemporaryFolder folder;
  head.Write(folder);
  const auto checkpoint = LoadCheckpoint(folder.path("head"), folder.path("target"));
  if (!checkpoint.ok()) {
    ADD_FAILURE() << checkpoint.status();
    return nullptr;
  }
  auto model = LoadEagle3Model(*checkpoint, {.dtype = ComputeDType::kFloat32, .threads = 1});
  if (!model.ok()) {
    ADD_FAILURE() << model.status();
    return nullptr;
  }
  return *std::move(model);
}

// Random rows in the form of a recording; `bytes` are its states.
struct Rows {
  Rows(uint32_t seed, int64_t count) {
    const std::vector<float> states = Noise(count * kWidth, seed);
    bytes = BytesOf(states);
    sequence.aux = *HiddenRows::Create(DType::kF32, count, kWidth, bytes);
    for (int64_t i = 0; i <= count; ++i)
      sequence.tokens.push_back(static_cast<int32_t>((i * i + seed) % TinyHead::kVocab));
  }
  Rows(const Rows&) = delete;

  std::string bytes;
  RecordedSequence sequence;
};

void ExpectSame(const std::vector<ScoredToken>& actual, const std::vector<ScoredToken>& expected) {
  ASSERT_EQ(TokensOf(actual), TokensOf(expected));
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i].log_prob, expected[i].log_prob, 1e-4f);
}

struct Kind {
  std::string name;
  std::function<void(TinyHead&)> change;
};

class VariantHeadTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    model_ = Load(GetParam().change);
    ASSERT_NE(model_, nullptr);
  }
  std::unique_ptr<DraftModel> model_;
  const Rows one_{1, 40}, other_{2, 40};
};

TEST_P(VariantHeadTest, ABatchDraftsWhatEachSequenceDraftsAlone) {
  OpenedSlot first(*model_), second(*model_);
  const std::vector<StepSequence> prompts = {
      first.ExtendRows(one_.sequence, 30, Outputs::kLast),
      second.ExtendRows(other_.sequence, 11, Outputs::kLast)};
  auto outputs = model_->Step(prompts, 1);
  ASSERT_THAT(outputs, IsOk());
  first.Took(30);
  second.Took(11);
  std::vector<ScoredToken> chains[2];
  for (int32_t depth = 0; depth < kDepth; ++depth) {
    for (const size_t i : {0, 1}) chains[i].push_back((*outputs)[i].rows.at(0).top.at(0));
    const std::vector<StepSequence> drafts = {first.DraftRow(chains[0].back().token),
                                              second.DraftRow(chains[1].back().token)};
    outputs = model_->Step(drafts, 1);
    ASSERT_THAT(outputs, IsOk());
  }
  ExpectSame(chains[0], DraftAlone(*model_, one_.sequence, 29, kDepth));
  ExpectSame(chains[1], DraftAlone(*model_, other_.sequence, 10, kDepth));
}

TEST_P(VariantHeadTest, RowsAfterARollbackReplaceTheOldOnes) {
  OpenedSlot slot(*model_);
  slot.Chain(*slot.Extend(one_.sequence, 8, true), kDepth);
  const StepSequence fork = slot.ExtendRows(other_.sequence, 6, Outputs::kLast);
  ASSERT_THAT(model_->Step({&fork, 1}, 1), IsOk());
  slot.Truncate(5);
  slot.Extend(one_.sequence, 1, false);
  ExpectSame(slot.Chain(*slot.Extend(one_.sequence, 7, true), kDepth),
             DraftAlone(*model_, one_.sequence, 12, kDepth));
}

// All but dynamic rotation, which has a test of its own.
class SteadyHeadTest : public VariantHeadTest {};

TEST_P(SteadyHeadTest, PiecesOfAPromptDraftWhatTheWholeDrafts) {
  OpenedSlot slot(*model_);
  for (const int64_t piece : {1, 17, 2}) slot.Extend(one_.sequence, piece, piece == 2);
  ExpectSame(slot.Chain(*slot.Extend(one_.sequence, 13, true), kDepth),
             DraftAlone(*model_, one_.sequence, 32, kDepth));
}

const Kind kLayers{"Layers", AddLayers}, kLatent{"Latent", MakeLatent},
    kNormedQueries{"NormedQueries", AddNorms}, kDynamic{"Dynamic", MakeDynamic};

std::string NameOf(const testing::TestParamInfo<Kind>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(Kinds, VariantHeadTest,
                         testing::Values(kLayers, kLatent, kNormedQueries, kDynamic), NameOf);
INSTANTIATE_TEST_SUITE_P(Kinds, SteadyHeadTest, testing::Values(kLayers, kLatent, kNormedQueries),
                         NameOf);

// Keys keep the turn of the pass that wrote them, so past the trained length, 16 here, pieces make
// a difference; up to it they make none.
TEST(DynamicRopeTest, PiecesMatterOnlyPastTheTrainedLength) {
  const auto model = Load(MakeDynamic);
  ASSERT_NE(model, nullptr);
  const Rows rows(1, 40);
  const auto in_two = [&](int64_t first, int64_t second) {
    OpenedSlot slot(*model);
    slot.Extend(rows.sequence, first, false);
    return *slot.Extend(rows.sequence, second, true);
  };
  const auto at_once = [&](int64_t count) {
    return DraftAlone(*model, rows.sequence, count - 1, 1).at(0);
  };
  EXPECT_NEAR(in_two(9, 7).log_prob, at_once(16).log_prob, 1e-5f);
  EXPECT_GT(std::abs(in_two(9, 25).log_prob - at_once(34).log_prob), 1e-4f);
}

}  // namespace
}  // namespace aerie
