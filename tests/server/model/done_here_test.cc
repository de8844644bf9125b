#include "server/model/done_here.h"

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::HasSubstr;
using testing::ValuesIn;

Checkpoint LoadTiny() {
  const TemporaryFolder folder;
  TinyHead().Write(folder);
  return *LoadCheckpoint(folder.path("head"), folder.path("target"));
}

TEST(DoneHereTest, TakesOnePlainLlamaLayer) { EXPECT_THAT(CheckDoneHere(LoadTiny()), IsOk()); }

struct SettingCase {
  std::string name;
  std::function<void(HeadSpec&)> change;
  std::string words;
};

class DoneHereSettingTest : public testing::TestWithParam<SettingCase> {};

TEST_P(DoneHereSettingTest, IsRefusedByNameAndSource) {
  Checkpoint checkpoint = LoadTiny();
  GetParam().change(checkpoint.spec);
  const absl::Status status = CheckDoneHere(checkpoint);
  ASSERT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, DoneHereSettingTest,
    ValuesIn(std::vector<SettingCase>{
        {"LatentAttention",
         [](HeadSpec& s) {
           s.attention = {AttentionKind::kLatent, "tensor x"};
         },
         "latent attention (tensor x)"},
        {"TwoLayers", [](HeadSpec& s) { s.num_layers.value = 2; }, "2 layers"},
        {"Yarn", [](HeadSpec& s) { s.rope.type.value = RopeType::kYarn; }, "RoPE of type yarn"},
        {"PartialRotation", [](HeadSpec& s) { s.rope.dims.value = 2; }, "part of the head"},
        {"Interleaved", [](HeadSpec& s) { s.rope.interleaved.value = true; }, "interleaved"},
        {"QkvBias", [](HeadSpec& s) { s.qkv_bias.value = true; }, "biases"},
        {"OutputBias", [](HeadSpec& s) { s.output_bias.value = true; }, "o_proj"},
        {"QkNorm", [](HeadSpec& s) { s.qk_norm.value = true; }, "norms of queries"},
        {"NormBeforeResidual", [](HeadSpec& s) { s.norm_before_residual.value = true; },
         "norm_before_residual"},
        {"NormBeforeFc", [](HeadSpec& s) { s.norm_before_fc.value = true; }, "norm_before_fc"},
        {"FcNorm", [](HeadSpec& s) { s.fc_norm.value = true; }, "fc_norm"},
        {"NormOutput", [](HeadSpec& s) { s.norm_output.value = true; }, "norm_output"},
        {"NoAux", [](HeadSpec& s) { s.use_aux_hidden_state.value = false; },
         "use_aux_hidden_state"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(DoneHereTest, ListsEverythingThatIsMissing) {
  Checkpoint checkpoint = LoadTiny();
  checkpoint.spec.qk_norm.value = true;
  checkpoint.spec.fc_norm.value = true;
  const std::string message(CheckDoneHere(checkpoint).message());
  EXPECT_THAT(message, HasSubstr("norms of queries"));
  EXPECT_THAT(message, HasSubstr("fc_norm"));
}

}  // namespace
}  // namespace aerie
