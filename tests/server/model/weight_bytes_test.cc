#include "server/model/weight_bytes.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/server/model/demo_head.h"

namespace aerie {
namespace {

TEST(WeightBytesTest, TellWhatTheLoadedModelThenTakes) {
  const std::vector<std::pair<ComputeDType, WeightElement>> types = {
      {ComputeDType::kFloat32, WeightElement::kFloat32},
      {ComputeDType::kBFloat16, WeightElement::kBFloat16},
      {ComputeDType::kInt8, WeightElement::kInt8}};
  for (const auto& [dtype, element] : types) {
    const int64_t all = LoadDemo({.dtype = dtype})->spec().weight_bytes;
    const auto mapped = static_cast<int64_t>(DemoCheckpoint().embedding.bytes.size());
    EXPECT_EQ(WeightBytes(DemoCheckpoint(), element), all - mapped) << static_cast<int>(element);
  }
}

}  // namespace
}  // namespace aerie
