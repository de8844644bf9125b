#include "server/checkpoint/tensor_names.h"

#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace aerie {
namespace {

struct NameCase {
  std::string name, stored;
  std::optional<int64_t> layer;
  std::string part, family;
};

class ParseTensorNameTest : public testing::TestWithParam<NameCase> {};

TEST_P(ParseTensorNameTest, TakesNamesApart) {
  const TensorName name = ParseTensorName(GetParam().stored);
  EXPECT_EQ(name.layer, GetParam().layer);
  EXPECT_EQ(name.part, GetParam().part);
  EXPECT_EQ(name.family, GetParam().family);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ParseTensorNameTest,
    testing::ValuesIn(std::vector<NameCase>{
        {"Midlayer", "midlayer.mlp.up_proj.weight", 0, "mlp.up_proj.weight", "midlayer."},
        {"NumberedMidlayer", "midlayer.2.hidden_norm.weight", 2, "hidden_norm.weight",
         "midlayer.N."},
        {"Layers", "layers.13.hidden_norm.weight", 13, "hidden_norm.weight", "layers.N."},
        {"PrefixedLayers", "model.layers.0.a.b", 0, "a.b", "model.layers.N."},
        {"PrefixedMidlayer", "model.midlayer.a", 0, "a", "model.midlayer."},
        {"Head", "fc.weight", std::nullopt, "fc.weight", ""},
        {"PrefixedHead", "model.fc.weight", std::nullopt, "fc.weight", "model."},
        {"LayersWithoutANumber", "layers.x.a", std::nullopt, "layers.x.a", ""},
        {"ANumberPastAnyInteger", "layers.99999999999999999999.a", std::nullopt,
         "layers.99999999999999999999.a", ""},
        {"OnlyANumber", "layers.7", std::nullopt, "layers.7", ""},
    }),
    [](const auto& test) { return test.param.name; });

TEST(TensorNamesTest, OnlyRotaryBuffersAreRedundant) {
  EXPECT_TRUE(IsRedundantTensor("midlayer.self_attn.rotary_emb.inv_freq"));
  EXPECT_FALSE(IsRedundantTensor("midlayer.self_attn.inv_freq"));
}

}  // namespace
}  // namespace aerie
