#include "server/guard/wiring_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/guard/synthetic_target.h"
#include "tests/server/guard/synthetic_worker.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const GuardProfile& Profile() {
  static const GuardProfile* const profile = new GuardProfile(SyntheticTarget::Profile());
  return *profile;
}

std::vector<Capture> Boundaries(std::vector<int32_t> numbers) {
  std::vector<Capture> captures;
  for (const int32_t number : numbers) captures.push_back(Capture::Boundary(number));
  return captures;
}

class WiringGuardTest : public ::testing::Test {
 protected:
  WiringGuardTest()
      : guard_({.profile = Profile(),
                .captures = 3,
                .on_change = [this](const WiringReport& r, WiringState) {
                  states_.push_back(r.state);
                }}) {}

  // What the guard says of a worker that sends these for so many rounds.
  WiringReport After(int64_t rounds, SyntheticWorker::Options options) {
    SyntheticWorker worker(guard_, std::move(options));
    worker.Rounds(rounds);
    return worker.Report();
  }

  std::vector<WiringState> states_;
  WiringGuard guard_;
};

TEST_F(WiringGuardTest, StaysCalmWhileRowsAreAsDeclared) {
  const WiringReport report = After(3000, {});
  EXPECT_EQ(report.state, WiringState::kOk) << report.verdict;
  EXPECT_THAT(states_, ElementsAre(WiringState::kOk));
  EXPECT_GT(report.rounds, 2900);  // those after the last vote are not told yet
  EXPECT_GT(report.sampled_rows, 2900);
}

TEST_F(WiringGuardTest, KnowsNothingBeforeTheFirstVotes) {
  EXPECT_EQ(After(10, {}).state, WiringState::kUnknown);
}

struct WrongCase {
  std::string name;
  std::vector<Capture> captures;
  std::string verdict;
};

class WrongCaptureTest : public WiringGuardTest, public ::testing::WithParamInterface<WrongCase> {};

TEST_P(WrongCaptureTest, IsSeenWithinTwoHundredRoundsAndNamed) {
  const WiringReport report = After(200, {.captures = GetParam().captures});
  EXPECT_EQ(report.state, WiringState::kWrong) << report.verdict;
  EXPECT_THAT(report.verdict, HasSubstr(GetParam().verdict));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, WrongCaptureTest,
    ::testing::ValuesIn(std::vector<WrongCase>{
        {"OneLayerLater", Boundaries({3, 7, 11}), "one layer later"},
        {"OneLayerEarlier", Boundaries({1, 5, 9}), "one layer earlier"},
        {"TwoLayersLater", Boundaries({4, 8, 12}), "2 layers later"},
        {"LastTwoSwapped", Boundaries({2, 10, 6}), "captures 1 and 2 seem to be swapped"},
        {"Embedding", Boundaries({0, 6, 10}), "the embedding is sent in place of boundary 2"},
        {"FinalNorm",
         {Capture::Boundary(2), Capture::Boundary(6), Capture::FinalNorm()},
         "final norm is sent in place of boundary 10"},
    }),
    [](const auto& test) { return test.param.name; });

TEST_F(WiringGuardTest, SeesTokensThatLagBehindTheirStates) {
  const WiringReport report = After(300, {.token_shift = -1});
  EXPECT_EQ(report.state, WiringState::kWrong) << report.verdict;
  EXPECT_THAT(report.verdict, HasSubstr("tokens lag one behind"));
}

TEST_F(WiringGuardTest, SeesTokensThatRunAhead) {
  const WiringReport report = After(300, {.token_shift = 1});
  EXPECT_EQ(report.state, WiringState::kWrong) << report.verdict;
  EXPECT_THAT(report.verdict, HasSubstr("tokens run one ahead"));
}

TEST_F(WiringGuardTest, DoesNotHideABadWorkerBehindTenGoodOnes) {
  std::vector<std::unique_ptr<SyntheticWorker>> workers;
  for (uint32_t i = 0; i < 11; ++i) {
    SyntheticWorker::Options options{.client = "worker " + std::to_string(i),
                                     .first_text = 100 + 10 * i};
    if (i == 7) options.captures = Boundaries({3, 7, 11});
    workers.push_back(std::make_unique<SyntheticWorker>(guard_, options));
  }
  for (int round = 0; round < 300; ++round) {
    for (auto& worker : workers) worker->Rounds(1);
  }
  for (uint32_t i = 0; i < 11; ++i) {
    EXPECT_EQ(workers[i]->Report().state, i == 7 ? WiringState::kWrong : WiringState::kOk) << i;
  }
  EXPECT_EQ(guard_.WorstState(), WiringState::kWrong);
}

TEST_F(WiringGuardTest, BelievesAWorkerThatWasMended) {
  SyntheticWorker worker(guard_, {.captures = Boundaries({3, 7, 11})});
  worker.Rounds(300);
  ASSERT_EQ(worker.Report().state, WiringState::kWrong);
  const absl::Time since = worker.Report().since;
  worker.SendFrom(SyntheticTarget::Declared().captures());
  // A vote or two do not suffice: what is kept must have turned over.
  worker.Rounds(60);
  EXPECT_EQ(worker.Report().state, WiringState::kWrong);
  EXPECT_EQ(worker.Report().since, since);
  worker.Rounds(600);
  EXPECT_EQ(worker.Report().state, WiringState::kOk) << worker.Report().verdict;
  EXPECT_GT(worker.Report().since, since);
  EXPECT_EQ(worker.Report().verdict, "rows look as declared");
}

TEST_F(WiringGuardTest, RaisesNoAlarmForOneOddText) {
  SyntheticWorker odd(guard_, {.captures = Boundaries({4, 8, 12})});
  odd.Rounds(20);  // one text, one vote
  odd.Close();
  SyntheticWorker worker(guard_, {.first_text = 300});
  worker.Rounds(600);
  EXPECT_EQ(worker.Report().state, WiringState::kOk) << worker.Report().verdict;
  EXPECT_THAT(states_, Not(::testing::Contains(WiringState::kWrong)));
}

TEST_F(WiringGuardTest, HearsSessionsThatAreTooShortForAVoteOfTheirOwn) {
  const WiringReport report = After(400, {.tokens = 26, .captures = Boundaries({3, 7, 11})});
  EXPECT_EQ(report.state, WiringState::kWrong) << report.verdict;
}

TEST_F(WiringGuardTest, WatchesOtherSessionsWhileLongOnesStayOpen) {
  std::vector<std::unique_ptr<SyntheticWorker>> open;
  for (uint32_t i = 0; i < 8; ++i) {
    open.push_back(std::make_unique<SyntheticWorker>(
        guard_, SyntheticWorker::Options{.first_text = 400 + i, .tokens = 5000}));
    open.back()->Rounds(150);
  }
  const int64_t before = open.front()->Report().votes;
  SyntheticWorker late(guard_, {.first_text = 500});
  late.Rounds(100);
  EXPECT_GT(late.Report().votes, before);
}

TEST_F(WiringGuardTest, LooksAtNoRowsOfTheFirstPositions) {
  const std::string bytes(4 * 3 * SyntheticTarget::kHidden * sizeof(float), '\0');
  const HiddenRows rows = *HiddenRows::Create(DType::kF32, 4, 3 * SyntheticTarget::kHidden, bytes);
  for (int i = 0; i < 100; ++i) {
    guard_.Watch("a", "b", absl::UnixEpoch())->OnRows(0, {1, 2, 3, 4}, rows, absl::UnixEpoch());
  }
  EXPECT_EQ(guard_.Reports().front().votes, 0);
}

TEST_F(WiringGuardTest, ComparesNoTokensAcrossAGap) {
  const std::string bytes(3 * SyntheticTarget::kHidden * sizeof(float), '\0');
  const HiddenRows row = *HiddenRows::Create(DType::kF32, 1, 3 * SyntheticTarget::kHidden, bytes);
  const auto pairs = [&](int64_t step) {
    const std::string client = "step " + std::to_string(step);
    const auto watch = guard_.Watch(client, "target", absl::UnixEpoch());
    for (int32_t i = 0; i < 64; ++i) {
      watch->OnRows(100 + step * i, {i * i % 7}, row, absl::UnixEpoch());
    }
    for (const WiringReport& report : guard_.Reports()) {
      if (report.client == client) return report.alignment.has_value();
    }
    return false;
  };
  EXPECT_TRUE(pairs(1));
  EXPECT_FALSE(pairs(2));
}

TEST_F(WiringGuardTest, LooksAtNoRowsOfAnotherWidth) {
  SyntheticWorker worker(guard_, {.captures = Boundaries({2, 6})});
  worker.Rounds(100);
  EXPECT_EQ(guard_.WorstState(), WiringState::kUnknown);
}

TEST_F(WiringGuardTest, WatchesSourcesPastItsBoundTogether) {
  std::vector<std::unique_ptr<SessionWatch>> watches;
  for (int i = 0; i < 400; ++i) {
    watches.push_back(guard_.Watch("client " + std::to_string(i), "target", absl::UnixEpoch()));
  }
  const std::vector<WiringReport> reports = guard_.Reports();
  EXPECT_EQ(reports.size(), 257);
  EXPECT_EQ(reports.front().client, "(others)");
}

TEST(WiringGuardWithoutProfileTest, StaysUnknownAndSaysWhy) {
  WiringGuard guard({.captures = 3});
  SyntheticWorker worker(guard, {});
  worker.Rounds(500);
  EXPECT_EQ(worker.Report().state, WiringState::kUnknown);
  EXPECT_THAT(worker.Report().verdict, HasSubstr("no profile"));
}

TEST(WiringGuardReplayTest, AsksForContiguousRowsOnceSomethingIsSuspect) {
  WiringGuard guard({.profile = Profile(), .captures = 3, .replay = true});
  SyntheticWorker good(guard, {.client = "good"});
  good.Rounds(500);
  EXPECT_FALSE(guard.TakeReplay().has_value());
  SyntheticWorker bad(guard, {.client = "bad", .captures = Boundaries({2, 10, 6})});
  bad.Rounds(300);
  const std::optional<ReplayRequest> request = guard.TakeReplay();
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->tokens.size(), 64);
  EXPECT_EQ(request->View(request->bytes).rows(), 64);
  EXPECT_EQ(request->orders.size(), 6);
}

TEST(WiringGuardReplayTest, HandsOutTheNewestOfASource) {
  WiringGuard guard({.profile = Profile(), .captures = 3, .replay = true});
  SyntheticWorker bad(guard, {.client = "bad", .captures = Boundaries({2, 10, 6})});
  bad.Rounds(1000);  // of which many could be replayed, while nobody takes one
  const std::optional<ReplayRequest> request = guard.TakeReplay();
  ASSERT_TRUE(request.has_value());
  EXPECT_FALSE(guard.TakeReplay().has_value()) << "the others have been overtaken";
  ReplayScores scores{.id = request->id};
  scores.log_probs.assign(request->orders.size(),
                          std::vector<float>(request->tokens.size() - 1, -1.0f));
  guard.OnReplay(scores, absl::UnixEpoch());
  ASSERT_TRUE(bad.Report().replay.has_value());
  EXPECT_EQ(bad.Report().replay->answered, 1);
}

TEST(WiringGuardReplayTest, BeginsAnewWhenRowsDoNotFollowEachOther) {
  WiringGuard guard({.profile = Profile(), .captures = 3, .replay = true});
  SyntheticWorker worker(guard, {.captures = Boundaries({2, 10, 6})});
  worker.Rounds(300);
  while (guard.TakeReplay().has_value()) continue;
  const auto watch = guard.Watch("worker", "synthetic", absl::UnixEpoch());
  const std::string bytes(70 * 3 * SyntheticTarget::kHidden * sizeof(float), '\0');
  const HiddenRows rows = *HiddenRows::Create(DType::kF32, 70, 3 * SyntheticTarget::kHidden, bytes);
  std::vector<int32_t> tokens(70);
  // Calls before it until the last replay is long enough ago.
  for (int64_t i = 0; i < 200; ++i) {
    tokens[0] = static_cast<int32_t>(i);
    watch->OnRows(1000 + 10 * i, absl::MakeSpan(tokens).first(5), rows.Slice(0, 5),
                  absl::UnixEpoch());
  }
  EXPECT_FALSE(guard.TakeReplay().has_value());
  tokens[0] = 777;
  watch->OnRows(9000, tokens, rows, absl::UnixEpoch());
  const std::optional<ReplayRequest> request = guard.TakeReplay();
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->base_length, 9000);
  EXPECT_EQ(request->tokens.size(), 64);
  EXPECT_EQ(request->tokens.front(), 777);
}

TEST(WiringGuardReplayTest, CallsAWiringWrongOnceReplaysContradictIt) {
  WiringGuard guard({.profile = Profile(), .captures = 3, .replay = true});
  SyntheticWorker worker(guard, {.captures = Boundaries({2, 10, 6})});
  int64_t answered = 0;
  for (int i = 0; i < 1000 && answered < 3; ++i) {
    worker.Rounds(1);
    const std::optional<ReplayRequest> request = guard.TakeReplay();
    if (!request.has_value()) continue;
    ReplayScores scores{.id = request->id};
    for (const CaptureOrder& order : request->orders) {
      const bool right = order.captures == std::vector<int32_t>{0, 2, 1};
      scores.log_probs.emplace_back(request->tokens.size() - 1, right ? -2.5f : -6.0f);
    }
    guard.OnReplay(scores, absl::UnixEpoch() + absl::Hours(1));
    ++answered;
  }
  ASSERT_EQ(answered, 3);
  const WiringReport report = worker.Report();
  EXPECT_EQ(report.state, WiringState::kWrong);
  ASSERT_TRUE(report.replay.has_value());
  EXPECT_EQ(report.replay->best, "in the order 0, 2, 1");
  EXPECT_NEAR(report.replay->gain, 3.5, 1e-6);
  EXPECT_THAT(report.verdict, HasSubstr("in the order 0, 2, 1"));
}

TEST_F(WiringGuardTest, ShowsAGapToTheExpectationAndRaisesNoAlarmForIt) {
  GuardProfile profile = Profile();
  profile.expectation =
      DraftingExpectation{.accuracy = 0.4, .log_likelihood = -2.5, .acceptance = {0.4, 0.15, 0.05}};
  WiringGuard guard({.profile = profile, .captures = 3});
  SyntheticWorker worker(guard, {});
  for (int i = 0; i < 400; ++i) {
    worker.Rounds(1);
    worker.watch().OnJudgement(3, i % 50 == 0 ? 1 : 0, std::nullopt, absl::UnixEpoch());
  }
  const WiringReport report = worker.Report();
  EXPECT_EQ(report.state, WiringState::kOk);
  ASSERT_TRUE(report.drafting.has_value());
  EXPECT_TRUE(report.drafting->below_expectation);
  EXPECT_NEAR(report.drafting->expected_accept_length, 1.6, 1e-9);
}

TEST_F(WiringGuardTest, SuspectsAWorkerThatCountsOtherDraftsThanItKeeps) {
  SyntheticWorker worker(guard_, {});
  for (int i = 0; i < 400; ++i) {
    worker.Rounds(1);
    worker.watch().OnJudgement(3, i % 2, 0, absl::UnixEpoch());
  }
  EXPECT_EQ(worker.Report().state, WiringState::kSuspect);
  EXPECT_THAT(worker.Report().verdict, HasSubstr("which positions it verifies"));
}

// Notes all but row sizes, which the guard leaves to its owner.
class NotingObserver : public WiringObserver {
 public:
  void OnVote(VoteOutcome outcome) override { ++votes.at(static_cast<size_t>(outcome)); }
  void OnState(WiringState state) override { states.push_back(state); }
  void OnSummary(const WiringSummary& summary) override { last = summary; }
  void OnRowSizes(absl::Span<const double>) override { FAIL(); }

  std::array<int, 3> votes{};
  std::vector<WiringState> states;
  WiringSummary last;
};

class WiringGuardEventsTest : public ::testing::Test {
 protected:
  static absl::Time At(int64_t seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

  NotingObserver observer_;
  std::vector<WiringState> worst_;
  WiringGuard guard_{{.profile = Profile(),
                      .captures = 3,
                      .on_worst = [this](WiringState state) { worst_.push_back(state); },
                      .observer = &observer_}};
};

TEST_F(WiringGuardEventsTest, CountVotesByWhatCameOfThem) {
  SyntheticWorker good(guard_, {.client = "good"});
  good.Rounds(500);
  EXPECT_GT(observer_.votes[static_cast<size_t>(VoteOutcome::kFits)], 20);
  EXPECT_EQ(observer_.votes[static_cast<size_t>(VoteOutcome::kOff)], 0);
  SyntheticWorker bad(guard_, {.client = "bad", .captures = Boundaries({2, 10, 6})});
  bad.Rounds(500);
  EXPECT_GT(observer_.votes[static_cast<size_t>(VoteOutcome::kOff)], 20);
}

TEST_F(WiringGuardEventsTest, SumUpAllSourcesAndTellOfTheWorst) {
  SyntheticWorker good(guard_, {.client = "good"});
  good.Rounds(300);
  EXPECT_EQ(observer_.last.sources, (std::array<int32_t, 4>{0, 1, 0, 0}));
  SyntheticWorker bad(guard_, {.client = "bad", .captures = Boundaries({3, 7, 11})});
  bad.Rounds(300);
  EXPECT_EQ(observer_.last.sources, (std::array<int32_t, 4>{0, 1, 0, 1}));
  EXPECT_EQ(observer_.last.worst, WiringState::kWrong);
  ASSERT_EQ(observer_.last.positions.size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(observer_.last.positions[i], bad.Report().places[i].position) << i;
  }
  EXPECT_THAT(observer_.states, ::testing::Contains(WiringState::kWrong));
  // The second source was unknown at first, which is worse than ok.
  EXPECT_EQ(worst_.front(), WiringState::kOk);
  EXPECT_EQ(worst_[1], WiringState::kUnknown);
  EXPECT_EQ(worst_.back(), WiringState::kWrong);
}

TEST_F(WiringGuardEventsTest, ForgetASourceThatHasBeenGoneForLong) {
  {
    SyntheticWorker bad(guard_, {.client = "bad", .captures = Boundaries({3, 7, 11})});
    bad.Rounds(300);
    ASSERT_EQ(guard_.WorstState(), WiringState::kWrong);
    guard_.Forget(At(1'000'000));
    EXPECT_EQ(guard_.WorstState(), WiringState::kWrong) << "its session is still open";
  }
  guard_.Forget(At(300 + 15 * 60 - 1));
  EXPECT_EQ(guard_.WorstState(), WiringState::kWrong);
  guard_.Forget(At(300 + 15 * 60));
  EXPECT_EQ(guard_.WorstState(), WiringState::kUnknown);
  EXPECT_EQ(worst_.back(), WiringState::kUnknown);
  EXPECT_EQ(observer_.last, WiringSummary());
  EXPECT_THAT(guard_.Reports(), ::testing::IsEmpty());
}

TEST_F(WiringGuardEventsTest, JudgeASourceThatComesBackAnew) {
  {
    SyntheticWorker bad(guard_, {.client = "worker", .captures = Boundaries({3, 7, 11})});
    bad.Rounds(300);
  }
  guard_.Forget(At(100'000));
  SyntheticWorker mended(guard_, {.client = "worker"});
  mended.Rounds(20);
  EXPECT_EQ(mended.Report().state, WiringState::kUnknown);
  mended.Rounds(300);
  EXPECT_EQ(mended.Report().state, WiringState::kOk) << mended.Report().verdict;
}

TEST_F(WiringGuardEventsTest, ForgetsWhenTheNextSessionOpens) {
  for (int i = 0; i < 400; ++i) {
    guard_.Watch("client " + std::to_string(i), "target", At(20 * 60 * i));
  }
  EXPECT_EQ(guard_.Reports().size(), 1) << "no place is held by those who left";
}

}  // namespace
}  // namespace aerie
