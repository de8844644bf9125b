// The whole of a verification, with a head that wants tensors 2, 5 and 8 of nine.
#include "server/verify/verify.h"

#include <cstdlib>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/verify/fake_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int32_t kTensors = 9;

VerifyOptions FastOptions() {
  VerifyOptions options;
  options.search.coarse_rows = 200;
  options.max_chains = 100;
  options.depth = 3;
  return options;
}

class VerifyTest : public testing::Test {
 protected:
  VerifyResult Run(const VerifyInput& input, const FakeTruth& truth = {}) {
    const auto result = Verify(input, FastOptions(), LoaderOf(truth), nullptr);
    EXPECT_THAT(result, IsOk());
    return result.ok() ? *result : VerifyResult();
  }

  FakeRecording recording_{kTensors, 24};
};

TEST_F(VerifyTest, VerifiesTheTruth) {
  const VerifyResult result = Run(InputOf(recording_, {2, 5, 8}));
  EXPECT_EQ(VerdictName(result.verdict), "verified") << result.reason;
  EXPECT_EQ(result.best, result.reference);
  EXPECT_THAT(result.candidates[result.best].wiring.tensors, ElementsAre("t2", "t5", "t8"));
  EXPECT_EQ(result.sequences, 24);
  EXPECT_LT(result.p_value, 0.0027);
  EXPECT_GT(result.margin, 0.0);
  ASSERT_TRUE(result.candidates[result.best].depths.has_value());
  EXPECT_EQ(result.candidates[result.best].depths->accuracy.size(), 3);
  EXPECT_THAT(result.advice, Contains(HasSubstr("SGLang")));
  for (const LabelResult& label : result.labels) {
    const bool used = label.tensor == "t2" || label.tensor == "t5" || label.tensor == "t8";
    EXPECT_EQ(label.verdict, used ? LabelVerdict::kSupported : LabelVerdict::kUntested);
  }
}

TEST_F(VerifyTest, NeverVerifiesAPlantedWiringAndNamesTheTruth) {
  const std::vector<std::vector<int32_t>> planted = {
      {2, 8, 5}, {5, 2, 8}, {5, 8, 2}, {8, 2, 5}, {8, 5, 2},  // all orders
      {1, 4, 7}, {1, 5, 8}, {2, 4, 8}, {2, 6, 8}, {2, 5, 7},  // a layer off
      {0, 5, 8}, {0, 2, 5}};                                  // the embedding
  for (const std::vector<int32_t>& wiring : planted) {
    const VerifyResult result = Run(InputOf(recording_, wiring));
    EXPECT_EQ(VerdictName(result.verdict), "contradicted")
        << absl::StrJoin(wiring, ",") << result.reason;
    EXPECT_THAT(result.candidates[result.best].wiring.tensors, ElementsAre("t2", "t5", "t8"));
    EXPECT_THAT(result.advice, Contains(HasSubstr("Capture [2, 5, 8]")));
    EXPECT_THAT(result.advice,
                Contains(HasSubstr("vLLM: eagle_aux_hidden_state_layer_ids [2, 5, 8]")));
  }
}

TEST_F(VerifyTest, CallsEquivalentWhatTheHeadDoesNotRead) {
  const FakeTruth indifferent{.costs = {0.0, 1.0, 3.0}, .noise = 0.0};
  const VerifyResult result = Run(InputOf(recording_, {2, 5, 8}), indifferent);
  EXPECT_EQ(VerdictName(result.verdict), "equivalent") << result.reason;
  EXPECT_EQ(result.equivalent.size(), kTensors - 3);
  EXPECT_THAT(result.advice, Contains(HasSubstr("t3 | t5 | t8 (accept length ")));
  // Planted within the set: the same answer, and not "verified".
  EXPECT_EQ(VerdictName(Run(InputOf(recording_, {3, 5, 8}), indifferent).verdict), "equivalent");
  EXPECT_EQ(VerdictName(Run(InputOf(recording_, {3, 4, 8}), indifferent).verdict), "contradicted");
}

TEST_F(VerifyTest, IsUndecidedOnFewSequencesHoweverLong) {
  const FakeRecording few(kTensors, kMinSequences - 1, 400);
  const VerifyResult result = Run(InputOf(few, {2, 5, 8}));
  EXPECT_EQ(VerdictName(result.verdict), "undecided");
  EXPECT_THAT(result.advice, Contains(HasSubstr("more sequences")));
}

TEST_F(VerifyTest, SaysSoWhenCloseOnesWereNotScoredOnAllRows) {
  const FakeTruth indifferent{.costs = {0.0, 0.0, 3.0}, .noise = 0.0};
  VerifyOptions options = FastOptions();
  options.search.max_thorough = 3;
  const auto result =
      Verify(InputOf(recording_, {2, 5, 8}), options, LoaderOf(indifferent), nullptr);
  ASSERT_THAT(result, IsOk());
  // Without noise the others would be equivalent; what was not looked at closely may not count so.
  EXPECT_NE(VerdictName(result->verdict), "verified");
  const FakeTruth noisy{.costs = {0.0, 0.0, 3.0}, .noise = 3.0};
  const auto open = Verify(InputOf(recording_, {2, 5, 8}), options, LoaderOf(noisy), nullptr);
  ASSERT_THAT(open, IsOk());
  EXPECT_EQ(VerdictName(open->verdict), "undecided");
  EXPECT_EQ(open->rows_needed, std::nullopt);
  EXPECT_THAT(open->advice, Contains(HasSubstr("set --max-thorough above 3")));
}

TEST_F(VerifyTest, FindsStatesThatAreOnePositionLate) {
  recording_.ShiftRows(1);
  const VerifyResult result = Run(InputOf(recording_, {2, 5, 8}));
  // Nothing here says whose the states are, so the better shift may be a leak.
  EXPECT_EQ(VerdictName(result.verdict), "undecided") << result.reason;
  EXPECT_EQ(result.candidates[result.best].wiring.shift, 1);
}

TEST_F(VerifyTest, FindsStatesThatAreOnePositionEarly) {
  recording_.ShiftRows(-1);
  const VerifyResult result = Run(InputOf(recording_, {2, 5, 8}));
  EXPECT_EQ(VerdictName(result.verdict), "contradicted") << result.reason;
  EXPECT_EQ(result.candidates[result.best].wiring.shift, -1);
  EXPECT_THAT(result.candidates[result.best].wiring.tensors, ElementsAre("t2", "t5", "t8"));
  EXPECT_THAT(result.advice, Contains(HasSubstr("position p - 1:")));
}

TEST_F(VerifyTest, LetsTheDataDecideBetweenTwoReadings) {
  VerifyInput input = InputOf(recording_, {1, 4, 7});
  input.readings.push_back(InputOf(recording_, {2, 5, 8}).readings[0]);
  const VerifyResult result = Run(input);
  EXPECT_EQ(VerdictName(result.verdict), "verified") << result.reason;
  EXPECT_EQ(result.declared[1].candidate, result.reference);
  EXPECT_TRUE(result.candidates[result.declared[0].candidate].declared);
  EXPECT_EQ(result.candidates[result.declared[0].candidate].standing, Standing::kExcluded);
}

TEST_F(VerifyTest, IsUndecidedWhenOneReadingIsNotRecorded) {
  VerifyInput input = InputOf(recording_, {2, 5, 8});
  Reading unseen;
  unseen.convention = "input-of-layer";
  unseen.wiring =
      *Wiring::Create({Capture::Boundary(20), Capture::Boundary(21), Capture::Boundary(22)}, 40);
  FindCandidate(input.captures, unseen);
  EXPECT_THAT(unseen.why_not, HasSubstr("boundary 20, nor boundary 21"));
  input.readings.push_back(unseen);
  EXPECT_EQ(VerdictName(Run(input).verdict), "undecided");
}

TEST_F(VerifyTest, SaysWhatTheHeadWantsOfUnlabelledTensors) {
  VerifyInput input = InputOf(recording_, {2, 5, 8});
  for (CaptureTensor& tensor : input.captures.tensors) tensor.claim.reset();
  for (Reading& reading : input.readings) {
    reading.candidate.reset();
    FindCandidate(input.captures, reading);
  }
  const VerifyResult result = Run(input);
  EXPECT_EQ(VerdictName(result.verdict), "undecided");
  EXPECT_THAT(result.reason, HasSubstr("no one tensor of the recording claims"));
  EXPECT_THAT(result.candidates[result.best].wiring.tensors, ElementsAre("t2", "t5", "t8"));
}

TEST_F(VerifyTest, ContradictsTheFilesWhenASettingDoesBetter) {
  VerifyInput input = InputOf(recording_, {2, 5, 8});
  CheckpointOptions flipped;
  flipped.head.norm_before_residual = true;
  input.variants = {{"norm_before_residual", "off", "on", flipped, ""},
                    {"d2t", "offsets", "absolute ids", {}, "they repeat"}};
  const ModelLoader load =
      [](const CheckpointOptions& options) -> absl::StatusOr<std::unique_ptr<DraftModel>> {
    FakeTruth truth;
    truth.bonus = options.head.norm_before_residual.value_or(false) ? 0.4 : 0.0;
    return std::make_unique<FakeHead>(truth);
  };
  const auto result = Verify(input, FastOptions(), load, nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(VerdictName(result->verdict), "contradicted");
  EXPECT_TRUE(result->what_if[0].better);
  EXPECT_FALSE(result->what_if[1].scored);
  EXPECT_THAT(result->advice, Contains(HasSubstr("--norm-before-residual=on")));
  EXPECT_THAT(result->reason, HasSubstr("its wiring is not contradicted"));
}

TEST_F(VerifyTest, SaysWhichNeighboursWereNotThereToTest) {
  VerifyInput input = InputOf(recording_, {2, 5, 8});
  const VerifyResult result = Run(input);
  EXPECT_THAT(result.limits, ElementsAre(HasSubstr("no boundary 9:")));
}

TEST_F(VerifyTest, RefusesARecordingThatIsTooSmall) {
  const FakeRecording two(2, 6);
  VerifyInput input = InputOf(two, {0, 1});
  input.num_captures = 3;
  EXPECT_THAT(Verify(input, FastOptions(), LoaderOf({}), nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const FakeRecording stubs(3, 6, 3);
  EXPECT_THAT(Verify(InputOf(stubs, {0, 1, 2}), FastOptions(), LoaderOf({}), nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(VerifyTest, TellsItsProgress) {
  std::vector<std::string> stages;
  ASSERT_THAT(Verify(InputOf(recording_, {2, 5, 8}), FastOptions(), LoaderOf({}),
                     [&](const std::string& stage, int64_t done, int64_t total) {
                       EXPECT_LE(done, total);
                       if (stages.empty() || stages.back() != stage) stages.push_back(stage);
                     }),
              IsOk());
  EXPECT_THAT(stages, Contains(HasSubstr("all candidates")));
  EXPECT_THAT(stages, Contains("accuracy by depth"));
}

}  // namespace
}  // namespace aerie
