// Own kernels against LibTorch on every kind of head that both do, and against themselves: in other
// numbers of threads, with scores that are looked at, and in types that round.
#include "server/model/packed_net.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/torch_net.h"
#include "tests/server/model/demo_head.h"
#include "tests/server/model/net_models.h"
#include "tests/server/model/tapped.h"
#include "tests/server/model/variant_heads.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

std::unique_ptr<Eagle3Model> OnLibTorch(const Checkpoint& checkpoint) {
  auto net = Eagle3Net::Load(checkpoint, at::kFloat);
  EXPECT_THAT(net, IsOk());
  return ModelOf(checkpoint, std::make_unique<TorchNet>(*std::move(net), checkpoint));
}

void ExpectNear(const std::vector<Scores>& actual, const std::vector<Scores>& expected,
                float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t row = 0; row < actual.size(); ++row) {
    ASSERT_EQ(actual[row].size(), expected[row].size());
    for (size_t i = 0; i < actual[row].size(); ++i) {
      ASSERT_TRUE(std::abs(actual[row][i] - expected[row][i]) <= tolerance)
          << actual[row][i] << " for " << expected[row][i] << " in row " << row;
    }
  }
}

class PackedKindTest : public testing::TestWithParam<HeadKind> {};

// Sums of a few dozen products in another order; a wrong equation is off by more than 1e-2.
TEST_P(PackedKindTest, ScoresEqualThoseOfLibTorch) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = LoadKind(GetParam(), folder);
  const NoiseRows rows(5, 30);
  const auto expected = ScoresOf(*OnLibTorch(checkpoint), rows.sequence);
  ExpectNear(ScoresOf(*OnKernels(checkpoint, WeightElement::kFloat32), rows.sequence), expected,
             2e-5f);
  ExpectNear(ScoresOf(*OnKernels(checkpoint, WeightElement::kFloat32, 3), rows.sequence), expected,
             2e-5f);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PackedKindTest, testing::ValuesIn(GroupedKinds()),
                         [](const auto& test) { return test.param.name; });

const WeightElement kElements[] = {WeightElement::kFloat32, WeightElement::kBFloat16,
                                   WeightElement::kInt8};

// One pass that extends, and one that drafts, for several sequences of unequal length.
std::vector<RowOutput> RoundOf(DraftModel& model, int32_t top_k) {
  std::vector<RowOutput> rows;
  std::vector<std::unique_ptr<OpenedSlot>> slots;
  std::vector<StepSequence> batch;
  for (size_t i = 0; i < 3; ++i) {
    slots.push_back(std::make_unique<OpenedSlot>(model));
    batch.push_back(slots[i]->ExtendRows(Recording()[i], 20 + 7 * i, Outputs::kLast));
  }
  std::vector<int32_t> best;
  for (const bool extend : {true, false}) {
    std::vector<std::vector<int32_t>> probes;
    for (size_t i = 0; i < batch.size(); ++i) {
      if (extend) {
        probes.push_back({i == 0 ? -1 : static_cast<int32_t>(100 * i)});
      } else {
        slots[i]->Took(20 + 7 * i);
        batch[i] = slots[i]->DraftRow(best[i]);
        probes.push_back({best[i]});
      }
    }
    for (size_t i = 0; i < batch.size(); ++i) batch[i].probes = probes[i];
    const auto outputs = model.Step(batch, top_k);
    EXPECT_THAT(outputs, IsOk());
    for (const StepOutput& output : *outputs) {
      rows.push_back(output.rows.at(0));
      best.push_back(output.rows[0].top.at(0).token);
    }
  }
  return rows;
}

void ExpectEqual(const std::vector<RowOutput>& actual, const std::vector<RowOutput>& expected,
                 float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t row = 0; row < actual.size(); ++row) {
    ASSERT_EQ(actual[row].top.size(), expected[row].top.size());
    for (size_t i = 0; i < actual[row].top.size(); ++i) {
      EXPECT_EQ(actual[row].top[i].token, expected[row].top[i].token);
      EXPECT_NEAR(actual[row].top[i].log_prob, expected[row].top[i].log_prob, tolerance);
    }
    const float probe = actual[row].probe_log_prob, known = expected[row].probe_log_prob;
    EXPECT_TRUE(probe == known || std::abs(probe - known) <= tolerance) << probe << " " << known;
  }
}

// The threads share panels, and no sum is split among them.
TEST(PackedNetTest, AnyNumberOfThreadsGivesTheSameBits) {
  for (const WeightElement element : kElements) {
    const auto expected = RoundOf(*OnKernels(DemoCheckpoint(), element, 1), 5);
    for (const int32_t threads : {2, 5})
      ExpectEqual(RoundOf(*OnKernels(DemoCheckpoint(), element, threads), 5), expected, 0.0f);
  }
}

// Of the demo head's 7.5 million weights for one row, 20 and 74.
TEST(PackedNetTest, APassUsesAsManyThreadsAsItsWorkIsWorth) {
  auto loaded = PackedNet::Load(DemoCheckpoint(), WeightElement::kBFloat16);
  ASSERT_THAT(loaded, IsOk());
  PackedNet& net = **loaded;
  net.StartThreads(9, PackedNet::ThreadUse::kByWork);
  const auto model = ModelOf(DemoCheckpoint(), *std::move(loaded));
  OpenedSlot slot(*model);
  const auto extend = [&](int64_t rows) {
    const StepSequence part = slot.ExtendRows(Recording()[0], rows, Outputs::kLast);
    EXPECT_THAT(model->Step({part}, 1), IsOk());
    slot.Took(rows);
    return net.threads_in_use();
  };
  EXPECT_EQ(extend(20), 5);
  EXPECT_EQ(extend(1), 1);
  EXPECT_EQ(extend(74), 9);
  const auto expected = RoundOf(*OnKernels(DemoCheckpoint(), WeightElement::kBFloat16, 1), 5);
  ExpectEqual(RoundOf(*model, 5), expected, 0.0f);
}

TEST(PackedNetTest, RankingInPiecesGivesWhatRankingWholeRowsGives) {
  for (const WeightElement element : kElements) {
    const auto model = OnKernels(DemoCheckpoint(), element, 2);
    for (const int32_t top_k : {1, 8, 500}) {
      const auto pieces = RoundOf(*model, top_k);
      const Tapped tap(*model);
      ExpectEqual(pieces, RoundOf(*model, top_k), 1e-6f);
    }
  }
}

// The demo's weights are bfloat16 in the file, so only kept keys and values are rounded, and, where
// the processor multiplies bfloat16, what meets them and the inputs of every product. int8
// rounds every weight to one of 255 steps of its channel's largest, which is up to 1.3 % of a
// matrix here, in five matrices one behind the other.
TEST(PackedNetTest, TypesThatRoundStayNearFloat32) {
  const auto exact = OnKernels(DemoCheckpoint(), WeightElement::kFloat32);
  const bool rounds_inputs = BestCpuLevel() == CpuLevel::kAvx512Bf16;
  for (const auto& [element, limit] :
       {std::pair{WeightElement::kBFloat16, rounds_inputs ? 2e-2 : 1e-2},
        {WeightElement::kInt8, 8e-2}}) {
    const auto rounded = OnKernels(DemoCheckpoint(), element);
    double worst = 0.0;
    for (size_t i = 0; i < Recording().size(); ++i) {
      std::vector<std::vector<Scores>> scores;
      for (DraftModel* const model :
           {static_cast<DraftModel*>(exact.get()), static_cast<DraftModel*>(rounded.get())}) {
        Tapped tap(*model);
        OpenedSlot slot(*model);
        slot.Extend(Recording()[i], Recording()[i].prompt_tokens, true);
        slot.Draft(17);  // the same for both, whatever they would pick
        slot.Draft(42);
        scores.push_back(tap.Take());
      }
      for (size_t row = 0; row < scores[0].size(); ++row) {
        double off = 0.0, size = 0.0;
        for (size_t j = 0; j < scores[0][row].size(); ++j) {
          off += std::pow(scores[1][row][j] - scores[0][row][j], 2);
          size += std::pow(scores[0][row][j], 2);
        }
        const double relative = std::sqrt(off / size);
        ASSERT_TRUE(relative <= limit) << relative << " in sequence " << i << ", row " << row;
        worst = std::max(worst, relative);
      }
    }
    std::cout << (element == WeightElement::kInt8 ? "int8" : "bfloat16")
              << ": scores off by at most " << worst << " of their root mean square\n";
    EXPECT_GT(worst, 0.0) << "nothing was rounded";
  }
}

TEST(PackedNetTest, ATypeTakesItsBytes) {
  const auto bytes = [](WeightElement element) {
    return (*PackedNet::Load(DemoCheckpoint(), element))->step_bytes();
  };
  const int64_t full = bytes(WeightElement::kFloat32);
  // Norms stay float32; channels of int8 have a scale each.
  EXPECT_NEAR(static_cast<double>(bytes(WeightElement::kBFloat16)), 0.5 * full, 0.001 * full);
  // fc stays bfloat16 there.
  const double fc = 576.0 * 1728;
  EXPECT_NEAR(static_cast<double>(bytes(WeightElement::kInt8)), 0.25 * full + fc, 0.004 * full);
}

}  // namespace
}  // namespace aerie
