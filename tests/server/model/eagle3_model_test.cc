#include "server/model/eagle3_model.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/kernels/cpu_level.h"
#include "server/model/cpu_budget.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/server/model/demo_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::HasSubstr;

Setting SettingOf(const DraftModel& model, const std::string& name) {
  const auto& settings = model.spec().settings;
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [&](const Setting& s) { return s.name == name; });
  return found == settings.end() ? Setting{} : *found;
}

absl::StatusOr<std::unique_ptr<DraftModel>> LoadTiny(const TinyHead& head,
                                                     const ModelOptions& options = {}) {
  const TemporaryFolder folder;
  head.Write(folder);
  const auto checkpoint = LoadCheckpoint(folder.path("head"), folder.path("target"));
  if (!checkpoint.ok()) return checkpoint.status();
  return LoadEagle3Model(*checkpoint, options);
}

// One row of a tiny head, drafted from.
absl::StatusOr<std::vector<StepOutput>> StepTiny(DraftModel& model, int32_t top_k) {
  const std::vector<float> aux = Noise(36, 7);
  const auto rows = HiddenRows::Create(
      DType::kF32, 1, 36, {reinterpret_cast<const char*>(aux.data()), aux.size() * sizeof(float)});
  const int32_t token = 21;
  const PageId page = 5;
  const StepSequence sequence{.slot = 0,
                              .pages = {&page, 1},
                              .tokens = {&token, 1},
                              .aux = *rows,
                              .outputs = Outputs::kLast};
  return model.Step({&sequence, 1}, top_k);
}

struct OptionCase {
  std::string name;
  void (*change)(ModelOptions&);
  std::string seen;
};

class ModelOptionsTest : public testing::TestWithParam<OptionCase> {};

TEST_P(ModelOptionsTest, NamesFlagAndValue) {
  ModelOptions options;
  GetParam().change(options);
  const absl::Status status = options.Validate();
  ASSERT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(status.message()), SaysWhatWhyAndHow(GetParam().seen));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, ModelOptionsTest,
    testing::ValuesIn(std::vector<OptionCase>{
        {"Device", [](ModelOptions& o) { o.device = "tpu"; }, "--device is \"tpu\""},
        {"Threads", [](ModelOptions& o) { o.threads = -1; }, "--threads is -1"},
        {"ManyThreads", [](ModelOptions& o) { o.threads = 5000; }, "--threads is 5000"},
        {"KvMemory", [](ModelOptions& o) { o.kv_memory_bytes = 0; }, "--kv-memory is 0"},
        {"PageRows", [](ModelOptions& o) { o.kv_page_rows = 0; }, "--kv-page-rows is 0"},
        {"LongPages", [](ModelOptions& o) { o.kv_page_rows = 1025; }, "--kv-page-rows is 1025"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(Eagle3ModelTest, TellsWhatItHolds) {
  const auto model = LoadTiny(TinyHead(), {.dtype = ComputeDType::kFloat32, .threads = 1});
  ASSERT_THAT(model, IsOk());
  const DrafterSpec& spec = (*model)->spec();
  EXPECT_EQ(spec.vocab_size, 40);
  EXPECT_EQ(spec.draft_vocab_size, 10);
  EXPECT_EQ(spec.hidden_size, 12);
  EXPECT_EQ(spec.target_num_layers, 12);
  EXPECT_EQ(spec.wiring.ToString(), "[2, 6, 9]");
  // Every matrix and norm once, in float32: 3,024 numbers of the head and 480 of the embedding.
  EXPECT_EQ(spec.weight_bytes, 4 * (12 * 36 + 24 * 24 + 2 * 12 * 24 + 12 * 24 + 3 * 20 * 12 +
                                    10 * 12 + 4 * 12 + 40 * 12));
  EXPECT_EQ(SettingOf(**model, "compute_dtype"),
            (Setting{"compute_dtype", "float32", "flag --dtype"}));
  EXPECT_EQ(SettingOf(**model, "threads"), (Setting{"threads", "1", "flag --threads"}));
}

TEST(Eagle3ModelTest, AutoFollowsTheCpuAndSaysWhy) {
  const auto model = LoadTiny(TinyHead());
  ASSERT_THAT(model, IsOk());
  const Setting dtype = SettingOf(**model, "compute_dtype");
  const bool vectors = BestCpuLevel() != CpuLevel::kBaseline;
  EXPECT_EQ(dtype.value, vectors || BFloat16Flag().has_value() ? "bfloat16" : "float32");
  const Setting path = SettingOf(**model, "compute_path");
  EXPECT_THAT(path.value, HasSubstr(vectors ? "own kernels, AVX" : "LibTorch"));
  EXPECT_THAT(path.source, HasSubstr("auto: this CPU has "));
  EXPECT_THAT(dtype.source, HasSubstr("auto: this CPU"));
  const Setting threads = SettingOf(**model, "threads");
  EXPECT_EQ(threads.value, std::to_string(vectors ? FindCpuBudget().threads : 1));
  EXPECT_THAT(threads.source, HasSubstr("auto: CPU"));
}

TEST(Eagle3ModelTest, TokensAreTargetIds) {
  const auto model = LoadTiny(TinyHead(), {.dtype = ComputeDType::kFloat32});
  ASSERT_THAT(model, IsOk());
  const auto outputs = StepTiny(**model, 10);
  ASSERT_THAT(outputs, IsOk());
  std::vector<int32_t> ids;
  for (const ScoredToken& scored : (*outputs)[0].rows[0].top) ids.push_back(scored.token);
  EXPECT_THAT(ids, testing::UnorderedElementsAreArray(TinyTargetIds()));
}

// A byte that is off by one in the vocabulary map shows in the token alone; equal heads draft
// equally.
TEST(Eagle3ModelTest, TheHeadsOwnEmbeddingIsTheOneThatIsUsed) {
  TinyHead head;
  const auto borrowed = StepTiny(**LoadTiny(head, {.dtype = ComputeDType::kFloat32}), 10);
  head.tensors.push_back({"embed_tokens.weight", "F32", {40, 12}, head.target_tensors[0].bytes});
  const auto same = StepTiny(**LoadTiny(head, {.dtype = ComputeDType::kFloat32}), 10);
  head.tensors.back().bytes = BytesOf(Noise(480, 99));
  const auto other = StepTiny(**LoadTiny(head, {.dtype = ComputeDType::kFloat32}), 10);
  EXPECT_EQ((*borrowed)[0].rows[0].top[0].log_prob, (*same)[0].rows[0].top[0].log_prob);
  EXPECT_NE((*borrowed)[0].rows[0].top[0].log_prob, (*other)[0].rows[0].top[0].log_prob);
}

TEST(Eagle3ModelTest, WeightsThatAreNoNumbersAreRefusedByName) {
  for (const char* name : {"norm.weight", "lm_head.weight", "midlayer.mlp.up_proj.weight"}) {
    TinyHead head;
    const float nan = std::numeric_limits<float>::quiet_NaN();
    head.Tensor(name).bytes.replace(20, 4, reinterpret_cast<const char*>(&nan), 4);
    const auto model = LoadTiny(head, {.dtype = ComputeDType::kFloat32});
    ASSERT_THAT(model, StatusIs(absl::StatusCode::kFailedPrecondition)) << name;
    EXPECT_THAT(std::string(model.status().message()),
                SaysWhatWhyAndHow("hold NaN or infinite values"));
  }
}

TEST(Eagle3ModelTest, AHeadThatGivesNoNumbersFailsItsTrialRow) {
  TinyHead head;
  head.Tensor("fc.weight").bytes = BytesOf(std::vector<float>(12 * 36, 3e38f));
  const auto model = LoadTiny(head, {.dtype = ComputeDType::kFloat32});
  ASSERT_THAT(model, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("failed its trial row"));
}

// A row of the tiny head: 2 key heads of 6 + 6 float32 numbers, 96 bytes.
TEST(Eagle3ModelTest, TheKvStoreIsAsLargeAsItsMemory) {
  const auto model = LoadTiny(
      TinyHead(),
      {.dtype = ComputeDType::kFloat32, .kv_memory_bytes = 40 * 96 * 5 + 479, .kv_page_rows = 5});
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ((*model)->kv_store().num_pages, 40);
  EXPECT_EQ((*model)->kv_store().page_rows, 5);
  EXPECT_EQ((*model)->kv_store().page_bytes, 96 * 5);
}

TEST(Eagle3ModelTest, KvMemoryForHardlyAPageIsRefused) {
  const auto model = LoadTiny(
      TinyHead(), {.dtype = ComputeDType::kFloat32, .kv_memory_bytes = 5000, .kv_page_rows = 16});
  ASSERT_THAT(model, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(model.status().message()),
              SaysWhatWhyAndHow("--kv-memory is 5000 bytes, which hold 3 pages of 16 rows "
                                "(--kv-page-rows)"));
}

TEST(Eagle3ModelTest, OneRowDraftsInEveryTypeOfTheFile) {
  // 0x3c00 is 1.0 in float16, 0x3f80 in bfloat16: heads of ones, told apart only by reading their
  // type right.
  for (const auto& [type, one] :
       {std::pair<const char*, uint16_t>{"F16", 0x3c00}, {"BF16", 0x3f80}}) {
    TinyHead half, full;
    for (TensorToWrite& tensor : half.tensors) {
      if (tensor.type != "F32") continue;
      const size_t count = tensor.bytes.size() / 4;
      full.Tensor(tensor.name).bytes = BytesOf(std::vector<float>(count, 1.0f));
      tensor = {tensor.name, type, tensor.shape, BytesOf(std::vector<uint16_t>(count, one))};
    }
    const auto expected = StepTiny(**LoadTiny(full, {.dtype = ComputeDType::kFloat32}), 1);
    const auto actual = StepTiny(**LoadTiny(half, {.dtype = ComputeDType::kFloat32}), 1);
    EXPECT_EQ((*actual)[0].rows[0].top[0].token, (*expected)[0].rows[0].top[0].token);
    EXPECT_EQ((*actual)[0].rows[0].top[0].log_prob, (*expected)[0].rows[0].top[0].log_prob);
  }
}

// bfloat16 keeps 8 bits, so near ties fall the other way now and then: half of the first tokens
// would be a fault.
TEST(Eagle3ModelTest, BFloat16DraftsNearlyTheSame) {
  const auto model = LoadDemo({.dtype = ComputeDType::kBFloat16, .threads = 1});
  int equal = 0;
  for (const RecordedSequence& sequence : Recording()) {
    const int64_t slot = sequence.prompt_tokens - 1;
    const ScoredToken narrow = DraftAlone(*model, sequence, slot, 1)[0];
    const ScoredToken wide = DraftAlone(SharedDemo(), sequence, slot, 1)[0];
    equal += narrow.token == wide.token;
    if (narrow.token == wide.token) {
      EXPECT_NEAR(narrow.log_prob, wide.log_prob, 0.1f);
    }
  }
  EXPECT_GE(equal, 10) << "of " << Recording().size();
}

// Enough rows that attention is shared out among threads.
TEST(Eagle3ModelTest, TwoThreadsComputeWhatOneDoes) {
  std::vector<std::vector<RowOutput>> outputs;
  for (const int32_t threads : {1, 2}) {
    const auto model = LoadDemo({.dtype = ComputeDType::kFloat32, .threads = threads});
    OpenedSlot slot(*model);
    const StepSequence part = slot.ExtendRows(Recording()[0], 150, Outputs::kEvery);
    auto step = model->Step({&part, 1}, 3);
    ASSERT_THAT(step, IsOk());
    outputs.push_back((*step)[0].rows);
  }
  for (size_t row = 0; row < 150; ++row) {
    for (size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(outputs[0][row].top[i].log_prob, outputs[1][row].top[i].log_prob, 1e-4f) << row;
  }
}

TEST(Eagle3ModelTest, TheVersionOfLibTorchIsKnown) {
  EXPECT_THAT(LibTorchVersion(), HasSubstr("2."));
}

}  // namespace
}  // namespace aerie
