#include "server/verify/engine_ids.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Wiring At(const std::vector<int32_t>& boundaries, int32_t num_layers) {
  std::vector<Capture> captures;
  for (const int32_t boundary : boundaries) captures.push_back(Capture::Boundary(boundary));
  return *Wiring::Create(captures, num_layers);
}

struct Case {
  const char* name;
  std::vector<int32_t> boundaries;
  int32_t num_layers;
  const char* model_type;
  const char *sglang, *vllm, *tensorrt;
};

class SpellForEnginesTest : public testing::TestWithParam<Case> {};

TEST_P(SpellForEnginesTest, WritesEachEnginesOwnIds) {
  const Case& c = GetParam();
  EXPECT_THAT(SpellForEngines(At(c.boundaries, c.num_layers), c.num_layers, c.model_type),
              ElementsAre(HasSubstr(c.sglang), HasSubstr(c.vllm), HasSubstr(c.tensorrt)));
}

INSTANTIATE_TEST_SUITE_P(Cases, SpellForEnginesTest,
                         testing::ValuesIn(std::vector<Case>{
                             {"Llama",
                              {2, 15, 27},
                              30,
                              "llama",
                              "layer_ids [1, 14, 26] (it adds 1)",
                              "[2, 15, 27]",
                              "capture [1, 14, 26]"},
                             {"KimiUsual",
                              {2, 30, 58},
                              61,
                              "kimi_k2",
                              "[1, 29, 57] (it adds 1 for this target",
                              "[2, 30, 58]",
                              "[1, 29, 57]"},
                             {"KimiMoved",
                              {3, 31, 59},
                              61,
                              "deepseek_v3",
                              "[3, 31, 59] (it takes them as boundaries for this target",
                              "[3, 31, 59]",
                              "[2, 30, 58]"},
                             {"KimiFromOne",
                              {1, 29, 57},
                              61,
                              "deepseek_v3",
                              "cannot spell [1, 29, 57]",
                              "[1, 29, 57]",
                              "[0, 28, 56]"},
                             {"GptOssToTheEnd",
                              {24, 30, 36},
                              36,
                              "gpt_oss",
                              "[24, 30, 36] (it takes a list that ends",
                              "[24, 30, 36]",
                              "[23, 29, 35]"},
                             {"GptOss",
                              {2, 18, 33},
                              36,
                              "gpt_oss",
                              "[1, 17, 32] (it adds 1)",
                              "[2, 18, 33]",
                              "[1, 17, 32]"},
                             {"BehindTheLast",
                              {2, 15, 30},
                              30,
                              "llama",
                              "boundary 30 would be left out",
                              "[2, 15, 30]",
                              "[1, 14, 29]"},
                             {"Embedding",
                              {0, 2, 15},
                              30,
                              "llama",
                              "cannot capture the embedding",
                              "[0, 2, 15]",
                              "-1 is the state behind its final norm"},
                             {"EmbeddingOnDeepSeek",
                              {0, 2, 30},
                              61,
                              "deepseek_v3",
                              "cannot capture",
                              "fail at boundary 0",
                              "cannot capture"}}),
                         [](const auto& test) { return test.param.name; });

TEST(SpellForEnginesTest, SaysThatEnginesSort) {
  EXPECT_THAT(SpellForEngines(At({15, 2, 27}, 30), 30, "llama"),
              ElementsAre(HasSubstr("ascending order whatever")));
}

TEST(SpellForEnginesTest, KnowsTheFinalNormAloneAndNotAmongOthers) {
  const Wiring alone = *Wiring::Create({Capture::FinalNorm()}, 30);
  EXPECT_THAT(SpellForEngines(alone, 30, ""),
              ElementsAre(HasSubstr("use_aux_hidden_state false"), HasSubstr("vLLM"),
                          HasSubstr("capture [-1]")));
  const Wiring mixed = *Wiring::Create({Capture::Boundary(2), Capture::FinalNorm()}, 30);
  EXPECT_THAT(SpellForEngines(mixed, 30, ""), ElementsAre(HasSubstr("none captures")));
}

}  // namespace
}  // namespace aerie
