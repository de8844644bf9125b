// What a proxy in front of several servers is told: calls of one session always the same.
#include "client/session_key.h"

#include <set>

#include "tests/client/session_fixture.h"

namespace aerie {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class SessionKeyTest : public SessionFixture {
 protected:
  // The keys of the calls that belong to sessions or streams.
  std::vector<std::string> KeysOfSessions() {
    std::vector<std::string> keys;
    for (const auto& [rpc, key] : service_.Keys()) {
      if (rpc != "GetServerInfo") keys.push_back(key);
    }
    return keys;
  }
};

INSTANTIATE_TEST_SUITE_P(Transports, SessionKeyTest,
                         ::testing::Values(TransportKind::kUnary, TransportKind::kStream),
                         TransportName);

TEST_P(SessionKeyTest, IsTheSameInAllCallsOfASessionThatIsLostAndOpenedAnew) {
  auto client = MakeClient();
  Worker worker;
  auto session = OpenSession(*client, {.row_source = worker.Source()});
  worker.Grow(4);
  ASSERT_TRUE(session->Draft(worker.Call(0, 1)).status.ok());
  service_.ForgetSessions();
  worker.Grow(5);
  ASSERT_TRUE(session->Draft(worker.Call(4, 1)).status.ok());
  ASSERT_TRUE(session->Close({}).ok());
  // Unary: open, draft, draft, open, draft (rows 0 to 3), draft, close.
  EXPECT_THAT(KeysOfSessions(), SizeIs(GetParam() == TransportKind::kUnary ? 7 : 1));
  EXPECT_THAT(KeysOfSessions(), Each(session->key()));
  EXPECT_TRUE(CheckSessionKey(session->key()).ok()) << session->key();
}

TEST_P(SessionKeyTest, IsTheStreamsOnAStreamAndTheSessionsOwnWithout) {
  auto client = MakeClient();
  auto first = OpenSession(*client);
  auto second = OpenSession(*client);
  const std::vector<std::string> keys = KeysOfSessions();
  const std::set<std::string> different(keys.begin(), keys.end());
  if (GetParam() == TransportKind::kUnary) {
    EXPECT_THAT(keys, SizeIs(2));
    EXPECT_THAT(different, SizeIs(2));
  } else {
    EXPECT_THAT(keys, SizeIs(1));
    EXPECT_EQ(first->key(), second->key());
    // Limits must be those of the server that gets the stream.
    EXPECT_EQ(service_.Keys().front(), std::make_pair(std::string("GetServerInfo"), keys.front()));
  }
  EXPECT_NE(MakeClient()->ServerInfo().value(), nullptr);
  EXPECT_THAT(different, Not(testing::Contains(service_.Keys().back().second)));
}

TEST_P(SessionKeyTest, OfAForkIsThatOfItsParent) {
  auto client = MakeClient();
  Worker worker;
  auto parent = OpenSession(*client);
  worker.Grow(4);
  ASSERT_TRUE(parent->Draft(worker.Call(0, 1)).status.ok());
  SessionSettings settings;
  settings.options.fork_of = parent->id();
  settings.options.fork_length = 3;
  auto fork = OpenSession(*client, settings);
  EXPECT_EQ(fork->key(), parent->key());
  EXPECT_THAT(KeysOfSessions(), Each(parent->key()));
}

TEST_P(SessionKeyTest, MayBeGivenForTheForkOfAnotherClientsSession) {
  if (GetParam() == TransportKind::kStream) {
    const auto refused = MakeClient()->Open(FakeDraftService::FittingManifest(), {.key = "k-1"});
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("\"k-1\""));
    EXPECT_THAT(KeysOfSessions(), IsEmpty());
    return;
  }
  auto client = MakeClient();
  auto session = OpenSession(*client, {.key = "k-1"});
  EXPECT_EQ(session->key(), "k-1");
  EXPECT_THAT(KeysOfSessions(), testing::ElementsAre("k-1"));
}

TEST(CheckSessionKeyTest, TakesWhatMetadataCanCarry) {
  EXPECT_TRUE(CheckSessionKey("aZ09.-_").ok());
  EXPECT_TRUE(CheckSessionKey(std::string(64, 'a')).ok());
  for (const std::string& key :
       {std::string(), std::string(65, 'a'), std::string("a b"), std::string("a\n"),
        std::string("\xc3\xa4"), std::string("a\0", 2)}) {
    const absl::Status refused = CheckSessionKey(key);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("expected 1 to 64 letters")) << key;
  }
}

TEST(NewSessionKeyTest, GivesAnotherOneEachTime) {
  std::set<std::string> keys;
  for (int i = 0; i < 1000; ++i) keys.insert(NewSessionKey());
  EXPECT_THAT(keys, SizeIs(1000));
  for (const std::string& key : keys) ASSERT_TRUE(CheckSessionKey(key).ok()) << key;
}

}  // namespace
}  // namespace aerie
