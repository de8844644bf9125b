#include "server/model/compute_choice.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/checkpoint/three_parts.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::HasSubstr;

HeadSpec Head(AttentionKind attention) {
  HeadSpec spec;
  spec.attention.value = attention;
  return spec;
}

struct ChoiceCase {
  std::string name;
  AttentionKind attention;
  ComputeDType asked;
  CpuTraits cpu;
  bool packed;
  std::string dtype, dtype_source, path_source;
};

constexpr auto kGrouped = AttentionKind::kGroupedQuery, kLatent = AttentionKind::kLatent;
const CpuTraits kOld = {CpuLevel::kBaseline, std::nullopt};
const CpuTraits kPlain = {CpuLevel::kAvx2, std::nullopt};
const CpuTraits kNew = {CpuLevel::kAvx512, "avx512_bf16"};
const CpuTraits kNewest = {CpuLevel::kAvx512Bf16, "avx512_bf16"};

class ComputeChoiceTest : public testing::TestWithParam<ChoiceCase> {};

TEST_P(ComputeChoiceTest, SaysWhatComputesInWhichTypeAndWhy) {
  const auto choice = ChooseCompute(Head(GetParam().attention), GetParam().asked, GetParam().cpu);
  ASSERT_THAT(choice, IsOk());
  EXPECT_EQ(choice->packed, GetParam().packed);
  EXPECT_EQ(choice->dtype.name, "compute_dtype");
  EXPECT_EQ(choice->dtype.value, GetParam().dtype);
  EXPECT_THAT(choice->dtype.source, HasSubstr(GetParam().dtype_source));
  EXPECT_THAT(choice->path_source, HasSubstr(GetParam().path_source));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ComputeChoiceTest,
    testing::ValuesIn(std::vector<ChoiceCase>{
        {"AutoIsBFloat16WithVectors", kGrouped, ComputeDType::kAuto, kPlain, true, "bfloat16",
         "auto: this CPU reads it as fast as memory gives it (AVX2)", "this CPU has AVX2"},
        {"AutoIsBFloat16WithLongVectors", kGrouped, ComputeDType::kAuto, kNew, true, "bfloat16",
         "(AVX-512)", "this CPU has AVX-512"},
        {"AutoIsBFloat16WithItsProducts", kGrouped, ComputeDType::kAuto, kNewest, true, "bfloat16",
         "auto: this CPU multiplies it (AVX-512 BF16), and sums are float32",
         "this CPU has AVX-512 BF16"},
        {"AutoIsFloat32WithoutVectors", kGrouped, ComputeDType::kAuto, kOld, false, "float32",
         "no bfloat16 products", "neither AVX2 with FMA nor AVX-512"},
        {"LatentAutoIsFloat32WithoutBFloat16Products", kLatent, ComputeDType::kAuto, kPlain, false,
         "float32", "no bfloat16 products", "the head has latent attention"},
        {"LatentAutoIsBFloat16WithThem", kLatent, ComputeDType::kAuto, kNew, false, "bfloat16",
         "(avx512_bf16)", "the head has latent attention"},
        {"Float32IsOnOwnKernelsToo", kGrouped, ComputeDType::kFloat32, kNew, true, "float32",
         "flag --dtype", "AVX-512"},
        {"BFloat16WithoutVectorsIsLibTorchs", kGrouped, ComputeDType::kBFloat16, kOld, false,
         "bfloat16", "flag --dtype", "neither"},
        {"Int8NeedsNoVectors", kGrouped, ComputeDType::kInt8, kOld, true, "int8", "flag --dtype",
         "neither"},
        {"Int8", kGrouped, ComputeDType::kInt8, kPlain, true, "int8", "flag --dtype", "AVX2"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(ComputeChoiceRefusalTest, Fp8OnTheCpuIsRefused) {
  const auto choice = ChooseCompute(Head(kGrouped), ComputeDType::kFp8, kNew);
  ASSERT_THAT(choice, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(choice.status().message()),
              SaysWhatWhyAndHow("--dtype is \"fp8\" but --device is \"cpu\""));
}

TEST(ComputeChoiceRefusalTest, Int8OfALatentHeadIsRefused) {
  const auto choice = ChooseCompute(Head(kLatent), ComputeDType::kInt8, kNew);
  ASSERT_THAT(choice, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(std::string(choice.status().message()),
              SaysWhatWhyAndHow("--dtype is \"int8\" but the head has latent attention"));
}

}  // namespace
}  // namespace aerie
