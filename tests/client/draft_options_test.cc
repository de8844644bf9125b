// Sessions that ask for more than a chain from row 0: trees, adaptive k, forks, a start further on.
// What happens to them when the server loses their rows.
#include "common/error_detail.h"
#include "tests/client/session_fixture.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

class DraftOptionsTest : public SessionFixture {};

INSTANTIATE_TEST_SUITE_P(Transports, DraftOptionsTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         TransportName);

SessionOptions Tree() {
  SessionOptions options;
  options.tree = TreeShape{.depth = 3, .top_k = 2, .total_tokens = 6};
  return options;
}

TEST_P(DraftOptionsTest, AsksForWhatItsWorkerWantsAndKnowsWhatIsInForce) {
  SessionOptions options = Tree();
  options.temperature = 0.5f;
  options.seed = 7;
  options.probs = ProposalProbs::kChosen;
  options.client = "blue";
  auto client = MakeClient();
  auto session = OpenSession(*client, {.options = options});
  const v1::OpenSessionRequest asked = service_.OpenRequests().at(0);
  EXPECT_EQ(asked.options().tree().total_tokens(), 6u);
  EXPECT_EQ(asked.options().sampling().seed(), 7u);
  EXPECT_EQ(asked.client(), "blue");
  EXPECT_FALSE(asked.options().has_max_k());
  SessionOptions in_force = options;
  in_force.max_k = 8;
  in_force.top_m = 64;
  EXPECT_EQ(session->options(), in_force);
  EXPECT_EQ(session->max_k(), 8);

  Worker worker;
  worker.Grow(4);
  const DraftOutcome outcome = session->Draft(worker.Call(0, 6));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.tree.chosen_probs, SizeIs(6));
}

TEST_P(DraftOptionsTest, ATreeComesInTheFormsThatWereAskedFor) {
  SessionOptions options = Tree();
  options.extras = {.ancestor_mask = true, .links = true};
  auto client = MakeClient();
  auto session = OpenSession(*client, {.options = options});
  Worker worker;
  worker.Grow(10);
  const DraftOutcome outcome = session->Draft(worker.Call(0, 4));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.tree, FakeDraftService::ProposalTree(worker.tokens(), 4, options));
  EXPECT_THAT(outcome.tree.parents, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(outcome.positions, ElementsAre(11, 11, 12, 12));
  EXPECT_EQ(outcome.ancestor_mask, outcome.tree.AncestorMask());
  EXPECT_EQ(outcome.links, outcome.tree.Links());
  EXPECT_EQ(outcome.method, v1::PROPOSAL_METHOD_GREEDY_TREE);

  auto plain = OpenSession(*client, {.options = Tree()});
  const DraftOutcome without = plain->Draft(worker.Call(0, 4));
  EXPECT_THAT(without.ancestor_mask, IsEmpty());
  EXPECT_THAT(without.links.first_child, IsEmpty());
}

TEST_P(DraftOptionsTest, AdaptiveKTellsItsChoiceAndIsToldWhatVerificationTook) {
  SessionOptions options;
  options.adaptive_k = true;
  auto client = MakeClient();
  auto session = OpenSession(*client, {.options = options});
  Worker worker;
  worker.Grow(150);  // two messages, of which the second drafts
  DraftInput input = worker.Call(0, 4);
  input.verify_cost = VerifyCost{absl::Milliseconds(20), 3};
  const DraftOutcome outcome = session->Draft(input);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.tree.size(), 2);
  EXPECT_EQ(outcome.no_draft_reason, v1::NO_DRAFT_REASON_NOT_WORTHWHILE);
  EXPECT_THAT(outcome.k_choice,
              Optional(KChoice{2, 1.5f, absl::Microseconds(90), absl::Milliseconds(8), true}));
  const auto requests = service_.DraftRequests();
  ASSERT_THAT(requests, SizeIs(2));
  EXPECT_FALSE(requests[0].has_verify_cost());
  EXPECT_EQ(requests[1].verify_cost().draft_tokens(), 3u);
  EXPECT_EQ(requests[1].verify_cost().time().nanos(), 20'000'000);
}

TEST_P(DraftOptionsTest, AStartIsWhereItsRowsBegin) {
  SessionOptions options;
  options.start = 500;
  Worker worker;
  auto client = MakeClient();
  auto session = OpenSession(*client, {.options = options});
  EXPECT_EQ(session->initial_length(), 500);
  worker.Grow(503);
  const DraftOutcome outcome = session->Draft(worker.Call(500, 2));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.length, 503);
  EXPECT_THAT(outcome.positions, ElementsAre(504, 505));

  // Lost: what was never computed is not asked for now either.
  service_.ForgetSessions();
  worker.Grow(504);
  const DraftOutcome lost = session->Draft(worker.Call(503, 2));
  EXPECT_EQ(lost.status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(lost.resend_from, Optional(500));
  const DraftOutcome again = session->Draft(worker.Call(500, 2));
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_EQ(again.length, 504);
}

TEST_P(DraftOptionsTest, ALostSessionWithAStartIsReplayedFromThere) {
  SessionOptions options;
  options.start = 500;
  Worker worker;
  auto client = MakeClient();
  auto session = OpenSession(*client, {.options = options, .row_source = worker.Source()});
  worker.Grow(510);
  ASSERT_TRUE(session->Draft(worker.Call(500, 2)).status.ok());
  service_.ForgetSessions();
  worker.Grow(511);
  const DraftOutcome outcome = session->Draft(worker.Call(510, 2));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.length, 511);
  EXPECT_THAT(OnlySession().tokens, SizeIs(11));
}

TEST_P(DraftOptionsTest, AForkBeginsWithTheRowsOfItsParent) {
  auto client = MakeClient();
  auto parent = OpenSession(*client);
  Worker worker;
  worker.Grow(8);
  ASSERT_TRUE(parent->Draft(worker.Call(0, 1)).status.ok());
  SessionOptions options;
  options.fork_of = parent->id();
  options.fork_length = 6;
  auto fork = OpenSession(*client, {.options = options, .row_source = worker.Source()});
  EXPECT_EQ(fork->initial_length(), 6);
  const DraftOutcome outcome = fork->Draft(worker.Call(6, 2));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_THAT(outcome.tree.tokens, testing::ElementsAreArray(worker.ExpectedDraft(2)));
  EXPECT_EQ(service_.DraftRequests().back().token_ids_size(), 2);

  // Both are lost: the fork must not ask for a parent that is no more.
  service_.ForgetSessions();
  worker.Grow(9);
  const DraftOutcome again = fork->Draft(worker.Call(8, 2));
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_FALSE(service_.OpenRequests().back().has_fork());
  EXPECT_EQ(fork->initial_length(), 0);
  ExpectServerHolds(worker);
}

TEST_P(DraftOptionsTest, EvictedRowsAreAskedForOrReplayed) {
  auto client = MakeClient();
  Worker worker;
  worker.Grow(5);
  {
    auto session = OpenSession(*client);
    ASSERT_TRUE(session->Draft(worker.Call(0, 1)).status.ok());
    const std::string id = session->id();
    service_.EvictSessions();
    worker.Grow(6);
    const DraftOutcome evicted = session->Draft(worker.Call(5, 1));
    EXPECT_EQ(evicted.status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(DetailOf(evicted.status).reason, kReasonEvicted);
    EXPECT_THAT(evicted.resend_from, Optional(0));
    ASSERT_TRUE(session->Draft(worker.Call(0, 1)).status.ok());
    EXPECT_EQ(session->id(), id) << "the session itself was not lost";
  }
  auto session = OpenSession(*client, {.row_source = worker.Source()});
  ASSERT_TRUE(session->Draft(worker.Call(0, 1)).status.ok());
  service_.EvictSessions();
  worker.Grow(7);
  const DraftOutcome outcome = session->Draft(worker.Call(6, 1));
  ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.resyncs, 1);
  ExpectServerHolds(worker);
}

TEST_P(DraftOptionsTest, OptionsThatContradictEachOtherNeedNoServerToBeRefused) {
  SessionOptions options = Tree();
  options.adaptive_k = true;
  auto client = MakeClient();
  const auto session = client->Open(FakeDraftService::FittingManifest(), {.options = options});
  EXPECT_THAT(session, Refuses(absl::StatusCode::kInvalidArgument, kReasonOptionsInvalid));
  EXPECT_THAT(service_.OpenRequests(), IsEmpty());
}

TEST_P(DraftOptionsTest, AServerThatDraftsOtherwiseIsNotGoneOnWith) {
  service_.bend_options = [](v1::SessionOptions* options) { options->clear_tree(); };
  auto client = MakeClient();
  const auto session = client->Open(FakeDraftService::FittingManifest(), {.options = Tree()});
  EXPECT_EQ(session.status().code(), absl::StatusCode::kFailedPrecondition) << session.status();
  EXPECT_THAT(service_.Sessions(), IsEmpty()) << "left open on the server";
}

}  // namespace
}  // namespace aerie
