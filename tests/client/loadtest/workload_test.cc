// Both kinds of sequences: what they give out and how their targets judge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "client/loadtest/recorded_workload.h"
#include "client/loadtest/synthetic_workload.h"
#include "tests/client/fake_draft_service.h"

namespace aerie::loadtest {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SyntheticOptions SmallOptions(std::vector<double> accept, int64_t prompt_rows = 5) {
  SyntheticOptions options;
  options.manifest = FakeDraftService::FittingManifest();
  options.prompt_rows = prompt_rows;
  options.accept = AcceptProcess::ByChance(std::move(accept));
  options.seed = 11;
  return options;
}

DraftTree Chain(const std::vector<int32_t>& tokens) {
  DraftTree chain;
  for (const int32_t token : tokens) chain.AppendToChain(token, -1.0f);
  return chain;
}

// root -> 4, 5; 4 -> 6, 7; 6 -> 8.
DraftTree SmallTree() {
  DraftTree tree;
  tree.tokens = {4, 5, 6, 7, 8};
  tree.parents = {0, 0, 1, 1, 3};
  tree.log_probs.assign(5, -1.0f);
  return tree;
}

std::vector<int32_t> Copy(absl::Span<const int32_t> tokens) {
  return {tokens.begin(), tokens.end()};
}

TEST(SyntheticWorkloadTest, KeepsDraftTokensWithTheGivenProbabilityAtEachPosition) {
  const SyntheticWorkload workload(SmallOptions({0.9, 0.5, 0.0}));
  auto sequence = workload.NewSequence(0);
  sequence->Prompt();
  const std::vector<int32_t> draft = {1, 2, 3, 4};
  constexpr int kRounds = 20'000;
  int first = 0, second = 0;
  for (int i = 0; i < kRounds; ++i) {
    const Verdict verdict = sequence->Verify(Chain(draft));
    first += verdict.accepted >= 1;
    second += verdict.accepted >= 2;
    EXPECT_LE(verdict.accepted, 2);
  }
  EXPECT_NEAR(first / double{kRounds}, 0.9, 0.02);
  EXPECT_NEAR(second / static_cast<double>(first), 0.5, 0.02);
}

TEST(SyntheticWorkloadTest, CommitsTheAcceptedTokensAndABonusThatIsNotTheRejectedOne) {
  SyntheticOptions options = SmallOptions({1.0, 0.0});
  options.manifest.vocab_size =
      2;  // so that the bonus would hit the rejected token half of the time
  const SyntheticWorkload workload(options);
  auto sequence = workload.NewSequence(0);
  sequence->Prompt();
  for (int i = 0; i < 100; ++i) {
    const Verdict verdict = sequence->Verify(Chain({1, 0, 1}));
    EXPECT_EQ(verdict.accepted, 1);
    EXPECT_THAT(Copy(verdict.committed.tokens), ElementsAre(1, 1));
    EXPECT_EQ(verdict.committed.rows.rows(), 2);
    EXPECT_FALSE(verdict.finished);
  }
}

TEST(SyntheticWorkloadTest, KeepsAPathOfATreeAndAddsATokenThatWasNotProposedBehindIt) {
  SyntheticOptions options = SmallOptions({1.0, 1.0, 0.0});
  options.manifest.vocab_size = 9;
  const SyntheticWorkload deep(options);
  options.accept = AcceptProcess::ByChance({0.0});
  const SyntheticWorkload none(options);
  auto keeps_two = deep.NewSequence(0);
  auto keeps_none = none.NewSequence(0);
  keeps_two->Prompt();
  keeps_none->Prompt();
  for (int i = 0; i < 200; ++i) {
    const Verdict two = keeps_two->Verify(SmallTree());
    EXPECT_EQ(two.accepted, 2);
    ASSERT_EQ(two.committed.tokens.size(), 3u);
    EXPECT_THAT(Copy(two.committed.tokens.first(2)), ElementsAre(4, 6));
    EXPECT_NE(two.committed.tokens[2], 8);
    EXPECT_EQ(SmallTree().CountAccepted(two.committed.tokens), 2);
    const Verdict rejected = keeps_none->Verify(SmallTree());
    EXPECT_EQ(rejected.accepted, 0);
    EXPECT_EQ(SmallTree().CountAccepted(rejected.committed.tokens), 0) << "neither 4 nor 5";
  }
}

TEST(SyntheticWorkloadTest, CommitsTheBonusAloneWithoutADraft) {
  const SyntheticWorkload workload(SmallOptions({1.0}));
  auto sequence = workload.NewSequence(0);
  sequence->Prompt();
  const Verdict verdict = sequence->Verify(Chain({}));
  EXPECT_EQ(verdict.accepted, 0);
  EXPECT_EQ(verdict.committed.tokens.size(), 1u);
}

TEST(SyntheticWorkloadTest, TheSameNumberGivesTheSameSequenceAndAnotherOneAnother) {
  const SyntheticWorkload one(SmallOptions({0.5})), two(SmallOptions({0.5}));
  const auto prompt = Copy(one.NewSequence(3)->Prompt().tokens);
  EXPECT_EQ(prompt, Copy(two.NewSequence(3)->Prompt().tokens));
  EXPECT_NE(prompt, Copy(two.NewSequence(4)->Prompt().tokens));
}

TEST(SyntheticWorkloadTest, ReplaysTheRowsThatItGaveOut) {
  // Longer than the pool of rows, so that the replay has to be put together.
  const SyntheticWorkload workload(SmallOptions({1.0}, 5000));
  auto sequence = workload.NewSequence(2);
  RowBatch prompt = sequence->Prompt();
  std::vector<int32_t> tokens = Copy(prompt.tokens);
  std::string bytes(prompt.rows.bytes());
  for (int i = 0; i < 50; ++i) {
    const Verdict verdict = sequence->Verify(Chain({7, 8, 9}));
    tokens.insert(tokens.end(), verdict.committed.tokens.begin(), verdict.committed.tokens.end());
    bytes.append(std::string(verdict.committed.rows.bytes()));
  }
  const RowBatch replay = sequence->Rows(0, 5200);
  EXPECT_THAT(Copy(replay.tokens), ElementsAreArray(tokens));
  EXPECT_TRUE(std::string(replay.rows.bytes()) == bytes);
  const size_t row_bytes = 8 * sizeof(float);
  const RowBatch piece = sequence->Rows(5100, 5110);
  EXPECT_TRUE(std::string(piece.rows.bytes()) == bytes.substr(5100 * row_bytes, 10 * row_bytes));
}

TEST(SyntheticWorkloadTest, MakesFiniteRowsThatDifferInEveryDType) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    SyntheticOptions options = SmallOptions({1.0});
    options.manifest.dtype = dtype;
    const SyntheticWorkload workload(options);
    const HiddenRows pool = workload.Pool(0, workload.pool_rows());
    EXPECT_EQ(pool.FindNonFinite(), std::nullopt) << DTypeName(dtype);
    std::vector<float> values(static_cast<size_t>(pool.rows() * pool.width()));
    pool.CopyToFloat(absl::MakeSpan(values));
    for (const float value : values) {
      ASSERT_GE(std::abs(value), 1.0f / 32) << DTypeName(dtype);
      ASSERT_LT(std::abs(value), 1.0f) << DTypeName(dtype);
    }
    EXPECT_FALSE(pool.Slice(0, 1).bytes() == pool.Slice(1, 1).bytes());
  }
}

class RecordedSequenceTest : public ::testing::Test {
 protected:
  RecordedSequenceTest() {
    auto bytes = std::make_shared<std::string>();
    RecordedWorkload::Recorded recorded;
    recorded.prompt_tokens = 2;
    recorded.tokens = {50, 51, 52, 53, 54, 55, 56, 57};
    for (size_t row = 0; row < recorded.tokens.size(); ++row) {
      const float value = 100.0f + static_cast<float>(row);
      for (int column = 0; column < 8; ++column) {
        bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
      }
    }
    recorded.aux = *HiddenRows::Create(DType::kF32, 8, 8, *bytes);
    workload_ = std::make_unique<RecordedWorkload>(FakeDraftService::FittingManifest(),
                                                   std::vector{recorded}, bytes);
    sequence_ = workload_->NewSequence(0);
  }
  static float FirstValue(const RowBatch& batch) {
    float value = 0;
    batch.rows.Slice(0, 1).CopyToFloat(absl::MakeSpan(row_));
    value = row_[0];
    return value;
  }

  static inline float row_[8];
  std::unique_ptr<RecordedWorkload> workload_;
  std::unique_ptr<Sequence> sequence_;
};

TEST_F(RecordedSequenceTest, PairsEachRowWithTheTokenThatFollowsIt) {
  const RowBatch prompt = sequence_->Prompt();
  EXPECT_THAT(Copy(prompt.tokens), ElementsAre(51, 52));
  EXPECT_EQ(FirstValue(prompt), 100.0f);
  const Verdict verdict = sequence_->Verify(Chain({53, 99}));
  EXPECT_EQ(verdict.accepted, 1);
  EXPECT_THAT(Copy(verdict.committed.tokens), ElementsAre(53, 54));
  EXPECT_EQ(FirstValue(verdict.committed), 102.0f);
}

TEST_F(RecordedSequenceTest, EndsWithTheRecordingAndNeverCountsDraftsBehindIt) {
  sequence_->Prompt();
  Verdict verdict =
      sequence_->Verify(Chain({53, 54, 55}));  // 53 54 55 and the bonus 56 are known now
  EXPECT_EQ(verdict.accepted, 3);
  EXPECT_FALSE(verdict.finished);
  verdict = sequence_->Verify(Chain({57, 58, 59}));
  EXPECT_EQ(verdict.accepted, 1);
  EXPECT_THAT(Copy(verdict.committed.tokens), ElementsAre(57));  // no bonus is recorded
  EXPECT_TRUE(verdict.finished);
}

TEST_F(RecordedSequenceTest, TakesTheRecordedTokenWhenNothingWasDrafted) {
  sequence_->Prompt();
  const Verdict verdict = sequence_->Verify(Chain({}));
  EXPECT_EQ(verdict.accepted, 0);
  EXPECT_THAT(Copy(verdict.committed.tokens), ElementsAre(53));
}

std::string SourceFolder() {
  const char* folder = std::getenv("AERIE_SOURCE_DIR");
  return folder == nullptr ? "." : folder;
}

TEST(RecordedWorkloadTest, LoadsTheRecordedEvaluation) {
  const auto workload = RecordedWorkload::Load(SourceFolder() + "/tests/golden/eval", 49152);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ((*workload)->size(), 12);
  EXPECT_EQ((*workload)->manifest().row_width(), 1728);
  EXPECT_EQ((*workload)->manifest().dtype, DType::kBF16);
  EXPECT_EQ((*workload)->manifest().vocab_size, 49152);
  EXPECT_EQ((*workload)->manifest().num_layers, 30);
  auto first = (*workload)->NewSequence(0);
  EXPECT_EQ(first->Prompt().tokens.size(), 46u);
  EXPECT_EQ((*workload)->NewSequence(13)->Prompt().tokens.size(), 44u);  // the second one again
}

TEST(RecordedWorkloadTest, NamesTheFileThatIsMissing) {
  const auto workload = RecordedWorkload::Load("/nonexistent", 100);
  EXPECT_EQ(workload.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(workload.status().message()), HasSubstr("/nonexistent/recording.json"));
}

TEST(RecordedWorkloadTest, RefusesADescriptionThatLacksAField) {
  const std::string folder = ::testing::TempDir();
  std::ofstream(folder + "/lacking.json") << R"({"target": "t", "target_layers": 3})";
  const auto workload = RecordedWorkload::Load(folder + "/lacking.safetensors", 100);
  EXPECT_EQ(workload.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(workload.status().message()), HasSubstr("hidden_size"));
}

}  // namespace
}  // namespace aerie::loadtest
