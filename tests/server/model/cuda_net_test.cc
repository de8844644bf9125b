// The net of CUDA devices against the packed one, whole drafts of it, on the emulation of a device
// and on a device where there is one.
#include "server/model/cuda_net.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/emulation/order.h"
#include "tests/server/model/cuda_net_fixture.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A pass that extends and three that draft, for sequences of unequal length, probes included.
std::vector<RowOutput> RoundOf(DraftModel& model, int32_t top_k, size_t sequences = 3) {
  std::vector<RowOutput> rows;
  std::vector<std::unique_ptr<OpenedSlot>> slots;
  std::vector<StepSequence> batch(sequences);
  std::vector<std::vector<int32_t>> probes(sequences);
  for (size_t i = 0; i < sequences; ++i) slots.push_back(std::make_unique<OpenedSlot>(model));
  for (int level = 0; level < 4; ++level) {
    for (size_t i = 0; i < sequences; ++i) {
      const auto count = static_cast<int64_t>(20 + 7 * i);
      if (level == 0) {
        batch[i] = slots[i]->ExtendRows(Recording()[i], count, Outputs::kLast);
      } else {
        if (level == 1) slots[i]->Took(count);
        batch[i] = slots[i]->DraftRow(rows[rows.size() - sequences + i].top.at(0).token);
      }
      probes[i] = {i == 0 ? -1 : static_cast<int32_t>(100 * i)};
      batch[i].probes = probes[i];
    }
    // `rows` grows below, so what was read from it stands in the parts already.
    const auto outputs = model.Step(batch, top_k);
    EXPECT_THAT(outputs, IsOk());
    for (const StepOutput& output : *outputs) rows.push_back(output.rows.at(0));
  }
  return rows;
}

void ExpectEqual(const std::vector<RowOutput>& actual, const std::vector<RowOutput>& expected,
                 float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t row = 0; row < actual.size(); ++row) {
    ASSERT_EQ(actual[row].top.size(), expected[row].top.size());
    for (size_t i = 0; i < actual[row].top.size(); ++i) {
      ASSERT_EQ(actual[row].top[i].token, expected[row].top[i].token) << "row " << row;
      ASSERT_TRUE(std::abs(actual[row].top[i].log_prob - expected[row].top[i].log_prob) <=
                  tolerance)
          << "row " << row;
    }
    const float probe = actual[row].probe_log_prob, known = expected[row].probe_log_prob;
    EXPECT_TRUE(probe == known || std::abs(probe - known) <= tolerance) << probe << " " << known;
  }
}

TEST_P(CudaNetTest, DraftsAndProbesEqualThoseOfTheCpu) {
  const auto expected = RoundOf(*OnKernels(DemoCheckpoint(), WeightElement::kFloat32), 8);
  ExpectEqual(RoundOf(*OnDevice(DemoCheckpoint(), DeviceElement::kFloat32).model, 8), expected,
              1e-4f);
}

TEST_P(CudaNetTest, RankingOnTheDeviceGivesWhatRankingWholeRowsGives) {
  const Loaded loaded = OnDevice(DemoCheckpoint(), DeviceElement::kBFloat16);
  for (const int32_t top_k : {1, 8, kMaxRanked, kMaxRanked + 1}) {
    const auto ranked = RoundOf(*loaded.model, top_k);
    const Tapped tap(*loaded.model);
    ExpectEqual(ranked, RoundOf(*loaded.model, top_k), 2e-6f);
  }
}

TEST_P(CudaNetTest, ARecordedPassGivesTheSameBits) {
  const Loaded loaded = OnDevice(DemoCheckpoint(), DeviceElement::kBFloat16);
  loaded.net->set_recording(false);
  const auto expected = RoundOf(*loaded.model, 5);
  EXPECT_EQ(loaded.net->replays(), 0);
  loaded.net->set_recording(true);
  for (int round = 0; round < 2; ++round) ExpectEqual(RoundOf(*loaded.model, 5), expected, 0.0f);
  // The first of its kind is started kernel by kernel.
  EXPECT_EQ(loaded.net->replays(), 2 * 3 - 1);
}

// Memory moves when a pass is larger than all before, and recordings know the old places.
TEST_P(CudaNetTest, RecordingsSurviveALargerPassInBetween) {
  const Loaded loaded = OnDevice(DemoCheckpoint(), DeviceElement::kBFloat16);
  const auto expected = RoundOf(*loaded.model, 5);
  {
    OpenedSlot slot(*loaded.model);
    slot.Extend(Recording()[0], Recording()[0].prompt_tokens, true);
    const StepSequence part =
        slot.DraftRows(std::vector<int32_t>(70, 5), std::vector<int32_t>(70, -1));
    ASSERT_THAT(loaded.model->Step({&part, 1}, 20), IsOk());
  }
  ExpectEqual(RoundOf(*loaded.model, 5), expected, 0.0f);
}

// Two sequences: 47 rows, all of which the kernel of few rows multiplies.
TEST_P(CudaNetTest, ARowHasTheSameBitsBesideOthersAndAlone) {
  const Loaded loaded = OnDevice(DemoCheckpoint(), DeviceElement::kInt8);
  const auto together = RoundOf(*loaded.model, 5, 2), alone = RoundOf(*loaded.model, 5, 1);
  ASSERT_EQ(alone.size(), 4u);
  for (size_t level = 0; level < 4; ++level)
    ExpectEqual({together[2 * level]}, {alone[level]}, 0.0f);
}

TEST_P(CudaNetTest, AForkReadsCopiesOfPages) {
  const auto draft = [](DraftModel& model) {
    OpenedSlot slot(model), fork(model);
    slot.Extend(Recording()[0], 21, true);
    fork.ForkOf(slot, 18);
    const ScoredToken first = *fork.Extend(Recording()[0], 3, true);
    return TokensOf(fork.Chain(first, 4));
  };
  EXPECT_EQ(draft(*OnDevice(DemoCheckpoint(), DeviceElement::kFloat32).model),
            draft(*OnKernels(DemoCheckpoint(), WeightElement::kFloat32)));
}

INSTANTIATE_TEST_SUITE_P(Backends, CudaNetTest, testing::ValuesIn(NetBackends()),
                         [](const auto& test) { return test.param.name; });

// What only the emulation can count, or bring about.
class EmulatedNetTest : public testing::Test {
 protected:
  EmulatedNetTest() {
    auto net = CudaNet::Load(DemoCheckpoint(), DeviceElement::kBFloat16, emulated::OpenDevice(0));
    EXPECT_THAT(net, IsOk());
    model_ = ModelOf(DemoCheckpoint(), *std::move(net));
  }
  std::unique_ptr<Eagle3Model> model_;
};

TEST_F(EmulatedNetTest, ADraftPassIsOneCopyInAndOneOutAndTakesNoMemory) {
  OpenedSlot slot(*model_);
  slot.Extend(Recording()[0], 21, true);
  for (int32_t row = 0; row < 3; ++row) {
    const int64_t copies = aerie_emulation::CopyCount();
    const int64_t blocks = aerie_emulation::AllocationCount();
    const StepSequence part = slot.DraftRow(5 + row);
    ASSERT_THAT(model_->Step({&part, 1}, 5), IsOk());
    EXPECT_EQ(aerie_emulation::CopyCount() - copies, 2);
    EXPECT_EQ(aerie_emulation::AllocationCount() - blocks, 0) << "row " << row;
  }
}

TEST_F(EmulatedNetTest, APromptTakesNoMemoryForItsProducts) {
  const auto extend = [&] {
    OpenedSlot slot(*model_);
    slot.Extend(Recording()[0], kFewRows + 6, true);
  };
  extend();
  const int64_t blocks = aerie_emulation::AllocationCount(), done = aerie_emulation::GemmCount();
  extend();
  EXPECT_EQ(aerie_emulation::AllocationCount() - blocks, 0);
  EXPECT_GE(aerie_emulation::GemmCount() - done, 2) << "fc, keys and values at least";
}

TEST_F(EmulatedNetTest, AFailureOfTheDeviceIsAStatusAndTheNextPassIsRight) {
  const auto expected = RoundOf(*model_, 5);
  OpenedSlot slot(*model_);
  slot.Extend(Recording()[0], 20, true);
  aerie_emulation::FailOnce();
  const StepSequence part = slot.DraftRow(5);
  EXPECT_THAT(model_->Step({&part, 1}, 5),
              Says(absl::StatusCode::kInternal,
                   AllOf(HasSubstr("CUDA failed while"), HasSubstr("expected a working"))));
  ExpectEqual(RoundOf(*model_, 5), expected, 0.0f);
}

TEST_F(EmulatedNetTest, APageThatCouldNotBeCopiedIsToldByTheNextPass) {
  OpenedSlot slot(*model_);
  slot.Extend(Recording()[0], 20, true);
  aerie_emulation::FailOnce();
  model_->CopyPage(0, 1);
  const StepSequence part = slot.DraftRow(5);
  EXPECT_THAT(model_->Step({&part, 1}, 5),
              Says(absl::StatusCode::kInternal, HasSubstr("copying within the device")));
}

}  // namespace
}  // namespace aerie
