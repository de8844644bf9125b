// Rows that a worker has sent through fc itself, beside rows that the net sends through it: in one
// pass, on every net, the scores are those of rows that all came as captures.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/cuda_net.h"
#include "server/model/packed_net.h"
#include "server/model/torch_net.h"
#include "tests/server/model/demo_head.h"
#include "tests/server/model/net_models.h"
#include "tests/server/model/tapped.h"
#include "tests/server/model/variant_heads.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

constexpr int64_t kCounts[] = {5, 7, 4, 3, 6};

enum class NetKind { kPacked, kLibTorch, kCuda };

std::unique_ptr<HeadNet> NetOf(const Checkpoint& checkpoint, NetKind kind) {
  switch (kind) {
    case NetKind::kLibTorch: {
      auto net = Eagle3Net::Load(checkpoint, at::kFloat);
      EXPECT_THAT(net, IsOk());
      return std::make_unique<TorchNet>(*std::move(net), checkpoint);
    }
    case NetKind::kCuda: {
      auto net = CudaNet::Load(checkpoint, DeviceElement::kFloat32, emulated::OpenDevice(0));
      EXPECT_THAT(net, IsOk());
      return *std::move(net);
    }
    case NetKind::kPacked:
      break;
  }
  auto net = PackedNet::Load(checkpoint, WeightElement::kFloat32);
  EXPECT_THAT(net, IsOk());
  (*net)->StartThreads(1);
  return *std::move(net);
}

// fc over all rows, as a worker would do it.
std::string ThroughFc(const Checkpoint& checkpoint, const HiddenRows& aux) {
  const TensorSpan& fc = checkpoint.tensors.at(HeadTensor::kFc);
  const auto outputs = static_cast<size_t>(fc.shape[0]), inputs = static_cast<size_t>(fc.shape[1]);
  std::vector<float> matrix(outputs * inputs), captures(static_cast<size_t>(aux.rows()) * inputs);
  std::memcpy(matrix.data(), fc.bytes.data(), fc.bytes.size());
  aux.CopyToFloat(absl::MakeSpan(captures));
  std::vector<float> fused;
  for (size_t row = 0; row < static_cast<size_t>(aux.rows()); ++row) {
    for (size_t out = 0; out < outputs; ++out) {
      double sum = 0.0;
      for (size_t in = 0; in < inputs; ++in) {
        sum += double{matrix[out * inputs + in]} * captures[row * inputs + in];
      }
      fused.push_back(static_cast<float>(sum));
    }
  }
  return {reinterpret_cast<const char*>(fused.data()), fused.size() * sizeof(float)};
}

// All scores of one pass over five sequences, of which those in `fused` come behind fc, and of one
// draft row behind each.
std::vector<Scores> ScoresOf(const Checkpoint& checkpoint, NetKind kind,
                             const std::vector<bool>& fused) {
  const auto model = ModelOf(checkpoint, NetOf(checkpoint, kind));
  Tapped tap(*model);
  std::vector<std::unique_ptr<NoiseRows>> rows;
  std::vector<std::unique_ptr<OpenedSlot>> slots;
  std::vector<std::string> bytes(fused.size());
  std::vector<RecordedSequence> sequences;
  std::vector<StepSequence> batch;
  for (size_t i = 0; i < fused.size(); ++i) {
    rows.push_back(std::make_unique<NoiseRows>(static_cast<uint32_t>(3 + i), kCounts[i]));
    sequences.push_back(rows.back()->sequence);
    slots.push_back(std::make_unique<OpenedSlot>(*model));
    if (!fused[i]) continue;
    bytes[i] = ThroughFc(checkpoint, sequences[i].aux);
    sequences[i].aux =
        *HiddenRows::Create(DType::kF32, kCounts[i], model->spec().hidden_size, bytes[i]);
  }
  for (size_t i = 0; i < fused.size(); ++i) {
    batch.push_back(slots[i]->ExtendRows(sequences[i], kCounts[i], Outputs::kEvery));
    batch.back().fused = fused[i];
  }
  EXPECT_THAT(model->Step(batch, 1), IsOk());
  batch.clear();
  for (size_t i = 0; i < fused.size(); ++i) {
    slots[i]->Took(kCounts[i]);
    batch.push_back(slots[i]->DraftRow(static_cast<int32_t>(5 + i)));
  }
  EXPECT_THAT(model->Step(batch, 1), IsOk());
  return tap.Take();
}

class FusedRowsTest : public testing::TestWithParam<NetKind> {};

// Sums in another order alone; a row in the wrong place is off by more than 1e-2.
TEST_P(FusedRowsTest, ScoresEqualThoseOfCaptures) {
  const TemporaryFolder folder;
  TinyHead().Write(folder);
  const auto checkpoint = LoadCheckpoint(folder.path("head"), folder.path("target"));
  ASSERT_THAT(checkpoint, IsOk());
  const auto expected = ScoresOf(*checkpoint, GetParam(), std::vector<bool>(5, false));
  ASSERT_EQ(expected.size(), 5u + 7 + 4 + 3 + 6 + 5);
  for (const std::vector<bool>& fused : {std::vector<bool>{true, true, true, true, true},
                                         {false, true, false, false, true},
                                         {true, false, false, true, false},
                                         {false, false, false, false, true},
                                         {true, false, true, false, true}}) {
    const auto actual = ScoresOf(*checkpoint, GetParam(), fused);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t row = 0; row < actual.size(); ++row) {
      for (size_t i = 0; i < actual[row].size(); ++i) {
        ASSERT_TRUE(std::abs(actual[row][i] - expected[row][i]) <= 2e-5f)
            << actual[row][i] << " for " << expected[row][i] << " in row " << row;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, FusedRowsTest,
                         testing::Values(NetKind::kPacked, NetKind::kLibTorch, NetKind::kCuda),
                         [](const auto& test) {
                           return test.param == NetKind::kPacked     ? "Packed"
                                  : test.param == NetKind::kLibTorch ? "LibTorch"
                                                                     : "CudaEmulated";
                         });

}  // namespace
}  // namespace aerie
