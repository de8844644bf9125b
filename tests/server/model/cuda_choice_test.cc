#include "server/model/cuda_choice.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/model/demo_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(CudaChoiceTest, ADeviceIsNamedByNumber) {
  EXPECT_EQ(*CudaDeviceNumber("cpu"), std::nullopt);
  EXPECT_EQ(*CudaDeviceNumber("cuda"), 0);
  EXPECT_EQ(*CudaDeviceNumber("cuda:3"), 3);
  for (const char* const wrong : {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda3"}) {
    EXPECT_THAT(CudaDeviceNumber(wrong),
                Says(absl::StatusCode::kInvalidArgument, HasSubstr("\"cuda:N\"")))
        << wrong;
  }
}

TEST(CudaChoiceTest, EveryTypeOfWeightsIsToldWithItsSource) {
  const HeadSpec& head = DemoCheckpoint().spec;
  const auto element = [&](ComputeDType asked, const char* name) {
    const auto choice = ChooseCudaCompute(head, asked);
    EXPECT_THAT(choice, IsOk());
    EXPECT_EQ(choice->dtype.value, name);
    return choice->device_element;
  };
  EXPECT_EQ(element(ComputeDType::kAuto, "bfloat16"), DeviceElement::kBFloat16);
  EXPECT_EQ(element(ComputeDType::kBFloat16, "bfloat16"), DeviceElement::kBFloat16);
  EXPECT_EQ(element(ComputeDType::kFloat32, "float32"), DeviceElement::kFloat32);
  EXPECT_EQ(element(ComputeDType::kInt8, "int8"), DeviceElement::kInt8);
  EXPECT_EQ(element(ComputeDType::kFp8, "fp8"), DeviceElement::kFp8);
}

#if !AERIE_WITH_CUDA
TEST(CudaChoiceTest, ABuildWithoutCudaSaysSo) {
  EXPECT_THAT(LoadEagle3Model(DemoCheckpoint(), {.device = "cuda:1"}),
              Says(absl::StatusCode::kFailedPrecondition,
                   AllOf(HasSubstr("--device is \"cuda:1\""), HasSubstr("preset cuda"))));
}
#endif

}  // namespace
}  // namespace aerie
