// Weights of more than one block: what heads of a few kilobytes cannot see.
#include "server/model/weight_loader.h"

#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/tensor_view.h"
#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

constexpr int64_t kColumns = 4096;

// Tensors in a file, since their pages are let go behind the conversion.
class WeightLoaderTest : public testing::Test {
 protected:
  const SafetensorsFile& Write(const std::vector<TensorToWrite>& tensors) {
    const std::string path = folder_.path("weights.safetensors");
    EXPECT_TRUE(WriteFile(path, Safetensors(tensors)));
    auto file = SafetensorsFile::Open(path);
    EXPECT_THAT(file, IsOk());
    file_ = std::make_unique<SafetensorsFile>(*std::move(file));
    return *file_;
  }

  TemporaryFolder folder_;
  std::unique_ptr<SafetensorsFile> file_;
  Checkpoint checkpoint_;
};

TEST_F(WeightLoaderTest, EveryRowOfALargeMatrixHasItsOwnScale) {
  constexpr int64_t kRows = 3000;  // 12 MiB
  // 0x38 is 1 and 0x40 is 2.
  std::string bytes(kRows * kColumns, '\x38');
  for (int64_t row = 0; row < kRows; ++row) bytes[row * kColumns + row % kColumns] = '\x40';
  std::vector<float> scales;
  for (int64_t row = 0; row < kRows; ++row) scales.push_back(static_cast<float>(row + 1));
  const SafetensorsFile& file = Write(
      {{"w", "F8_E4M3", {kRows, kColumns}, bytes}, {"s", "F32", {kRows, 1}, BytesOf(scales)}});
  checkpoint_.tensors[HeadTensor::kDown] = *file.Find("w");
  checkpoint_.scales[HeadTensor::kDown] = *file.Find("s");
  WeightLoader loader(checkpoint_, at::kFloat);
  const at::Tensor weight = loader.Matrix(HeadTensor::kDown);
  const at::Tensor numbers = at::arange(1, kRows + 1, at::kFloat);
  EXPECT_TRUE(at::equal(weight.diagonal(), 2 * numbers));
  EXPECT_TRUE(at::equal(weight.sum(1), (kColumns + 1) * numbers));
  EXPECT_THAT(loader.status(), IsOk());
  EXPECT_EQ(loader.bytes(), 4 * kRows * kColumns);
}

TEST_F(WeightLoaderTest, StackedMatricesKeepTheirOrder) {
  constexpr int64_t kRows = 700;  // 11 MiB each
  std::vector<float> gate(kRows * kColumns, 1.0f), up(kRows * kColumns, 2.0f);
  gate.back() = 3.0f;
  const SafetensorsFile& file = Write({{"g", "F32", {kRows, kColumns}, BytesOf(gate)},
                                       {"u", "F32", {kRows, kColumns}, BytesOf(up)}});
  checkpoint_.tensors[HeadTensor::kGate] = *file.Find("g");
  checkpoint_.tensors[HeadTensor::kUp] = *file.Find("u");
  WeightLoader loader(checkpoint_, at::kBFloat16);
  const at::Tensor both = loader.Stack({HeadTensor::kGate, HeadTensor::kUp}).to(at::kFloat);
  ASSERT_EQ(both.sizes(), at::IntArrayRef({2 * kRows, kColumns}));
  EXPECT_EQ(both[kRows - 1][kColumns - 1].item<float>(), 3.0f);
  EXPECT_EQ(both.narrow(0, 0, kRows).sum().item<float>(), kRows * kColumns + 2.0f);
  EXPECT_TRUE(at::equal(both.narrow(0, kRows, kRows), at::full({kRows, kColumns}, 2.0f)));
}

TEST_F(WeightLoaderTest, ANumberThatIsNoneIsFoundInTheLastBlock) {
  constexpr int64_t kRows = 700;
  std::vector<float> values(kRows * kColumns, 1.0f);
  values.back() = std::numeric_limits<float>::quiet_NaN();
  const SafetensorsFile& file =
      Write({{"midlayer.mlp.down_proj.weight", "F32", {kRows, kColumns}, BytesOf(values)}});
  checkpoint_.tensors[HeadTensor::kDown] = file.tensors()[0];
  WeightLoader loader(checkpoint_, at::kBFloat16);
  loader.Matrix(HeadTensor::kDown);
  ASSERT_THAT(loader.status(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(std::string(loader.status().message()),
              testing::HasSubstr("midlayer.mlp.down_proj.weight hold NaN"));
}

TEST_F(WeightLoaderTest, WhatRoundsToInfinityIsRefusedInBFloat16AndNotInFloat32) {
  const auto load = [&](float value, WeightElement element) {
    const SafetensorsFile& file =
        Write({{"w", "F32", {1, 2}, BytesOf(std::vector<float>{-value, 1.0f})}});
    checkpoint_.tensors[HeadTensor::kDown] = *file.Find("w");
    WeightLoader loader(checkpoint_, at::kFloat);
    loader.Packed({HeadTensor::kDown}, element);
    return loader.status();
  };
  EXPECT_THAT(load(0x1.fefffcp127f, WeightElement::kBFloat16), IsOk());
  EXPECT_THAT(load(0x1.ffp127f, WeightElement::kBFloat16),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(load(0x1.ffp127f, WeightElement::kFloat32), IsOk());
  EXPECT_THAT(load(std::numeric_limits<float>::infinity(), WeightElement::kFloat32),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

// Rows that fill neither the last panel nor the last block.
TEST_F(WeightLoaderTest, ThreadsPackTheSameBytesAsOne) {
  constexpr int64_t kRows = 1201;
  std::vector<float> first(kRows * kColumns), second(kRows * kColumns);
  for (size_t i = 0; i < first.size(); ++i) {
    first[i] = static_cast<float>(i % 1021) - 500.0f;
    second[i] = static_cast<float>(i % 509) * 0.25f;
  }
  const SafetensorsFile& file = Write({{"g", "F32", {kRows, kColumns}, BytesOf(first)},
                                       {"u", "F32", {kRows, kColumns}, BytesOf(second)}});
  checkpoint_.tensors[HeadTensor::kGate] = *file.Find("g");
  checkpoint_.tensors[HeadTensor::kUp] = *file.Find("u");
  for (const auto element :
       {WeightElement::kFloat32, WeightElement::kBFloat16, WeightElement::kInt8}) {
    const auto bytes_of = [](const PackedMatrix& matrix) {
      return std::string_view(reinterpret_cast<const char*>(matrix.data()),
                              matrix.panels() * matrix.panel_bytes());
    };
    WeightLoader one(checkpoint_, at::kFloat), three(checkpoint_, at::kFloat, 3);
    const PackedMatrix alone = one.Packed({HeadTensor::kGate, HeadTensor::kUp}, element);
    const PackedMatrix shared = three.Packed({HeadTensor::kGate, HeadTensor::kUp}, element);
    EXPECT_TRUE(bytes_of(alone) == bytes_of(shared));
    EXPECT_NE(bytes_of(shared).find_first_not_of('\0'), std::string_view::npos);
    EXPECT_TRUE(bytes_of(one.PackedPairs(HeadTensor::kGate, HeadTensor::kUp, element)) ==
                bytes_of(three.PackedPairs(HeadTensor::kGate, HeadTensor::kUp, element)));
  }
}

// Of this process, in bytes: the most that was resident since ForgetPeak(), as the kernel tells it.
int64_t PeakBytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

bool ForgetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

TEST_F(WeightLoaderTest, LoadingHoldsTheWeightsAndOneBlock) {
  constexpr int64_t kRows = 8192;  // 64 MiB
  const SafetensorsFile& file =
      Write({{"w", "BF16", {kRows, kColumns}, std::string(kRows * kColumns * 2, '\x3c')}});
  checkpoint_.tensors[HeadTensor::kDown] = *file.Find("w");
  checkpoint_.embedding = *file.Find("w");
  WeightLoader loader(checkpoint_, at::kBFloat16);
  const int64_t weights = kRows * kColumns * 2, block = int64_t{32} << 20;
  if (!ForgetPeak()) GTEST_SKIP() << "this system does not let a process forget its peak";
  const int64_t before = PeakBytes();
  const MappedRows embedding = loader.Embedding();
  EXPECT_LT(PeakBytes() - before, block) << "the embedding stays in its file";
  const at::Tensor weight = loader.Matrix(HeadTensor::kDown);
  EXPECT_LT(PeakBytes() - before, weights + block);
  EXPECT_GT(PeakBytes() - before, weights / 2) << "else the peak is not what it is taken for";
}

}  // namespace
}  // namespace aerie
