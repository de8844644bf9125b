// The commands of aerie-admin about drafters, against the real service over a fake backend.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/admin/admin_commands.h"
#include "client/admin/admin_flags.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/testing/status_matchers.h"

namespace aerie::admin {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AdminDrafterFlagsTest, LoadNamesDrafterFolderAndTargetAndHasMinutes) {
  const auto options =
      ParseAdminFlags({"load", "b", "/heads/b", "--target", "/models/t", "--layer-id-convention",
                       "input-of-layer", "--norm-output", "false", "--rope-theta", "5e5",
                       "--ignore-config-key", "x", "--ignore-config-key", "y"});
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->command, Command::kLoad);
  EXPECT_EQ(options->timeout, absl::Minutes(10));
  EXPECT_EQ(options->name, "b");
  const v1::DrafterSource& source = options->source;
  EXPECT_EQ(source.folder(), "/heads/b");
  EXPECT_EQ(source.target(), "/models/t");
  EXPECT_EQ(source.layer_id_convention(), "input-of-layer");
  EXPECT_FALSE(source.has_norm_before_residual());
  EXPECT_TRUE(source.has_norm_output());
  EXPECT_FALSE(source.norm_output());
  EXPECT_EQ(source.rope_theta(), 5e5);
  EXPECT_THAT(source.ignored_config_keys(), ::testing::ElementsAre("x", "y"));
}

TEST(AdminDrafterFlagsTest, WhatOnlyAsksHasSecondsAndAGivenTimeCounts) {
  EXPECT_EQ(ParseAdminFlags({"drafters"}).value().timeout, absl::Seconds(5));
  EXPECT_EQ(ParseAdminFlags({"unload", "a"}).value().timeout, absl::Minutes(10));
  EXPECT_EQ(ParseAdminFlags({"reload", "--timeout", "3s"}).value().timeout, absl::Seconds(3));
}

TEST(AdminDrafterFlagsTest, NamesWhatItCannotRead) {
  for (const auto& [words, message] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"load"}, "name"},
           {{"load", "b", "/heads/b"}, "--target"},
           {{"load", "b", "heads/b", "--target", "/t"}, "the folder is \"heads/b\""},
           {{"reload", "b", "--target", "t"}, "the target is \"t\""},
           {{"reload", "b", "/heads/b"}, "/heads/b"},
           {{"unload"}, "name"},
           {{"drafters", "b"}, "b"}}) {
    const auto options = ParseAdminFlags(words);
    EXPECT_THAT(options, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(std::string(options.status().message()),
                AllOf(HasSubstr(message), HasSubstr("expected")));
  }
}

v1::DrafterStatus Drafter(const std::string& name, v1::DrafterState state) {
  v1::DrafterStatus drafter;
  drafter.set_name(name);
  drafter.set_state(state);
  drafter.mutable_since()->set_seconds(1700000000);
  drafter.set_sessions(3);
  if (state != v1::DRAFTER_STATE_LOADING) drafter.mutable_info()->set_version("5eed");
  drafter.mutable_source()->set_name(name);
  drafter.mutable_source()->set_folder("/heads/" + name);
  drafter.mutable_source()->set_target("/models/t");
  drafter.mutable_source()->add_ignored_config_keys("old");
  return drafter;
}

class AdminDraftersTest : public ::testing::Test {
 protected:
  AdminDraftersTest() {
    GrpcServerOptions options;
    options.listen = {"127.0.0.1:0"};
    auto server = GrpcServer::Start(options, &service_);
    EXPECT_THAT(server, IsOk());
    server_ = *std::move(server);
    service_.Serve(
        {.list_drafters = [this] { return drafters_; },
         .load_drafter =
             [this](v1::DrafterSource source, LoadDone done) {
               source_ = std::move(source);
               done(Answer());
             },
         .reload_drafter =
             [this](std::string name, std::optional<v1::DrafterSource> source, ReloadDone done) {
               name_ = std::move(name);
               source_ = std::move(source);
               if (!refusal_.ok()) return done(refusal_);
               v1::ReloadDrafterResponse response;
               *response.mutable_drafter() = drafters_.front();
               response.set_unchanged(unchanged_);
               done(response);
             },
         .unload_drafter =
             [this](std::string name, LoadDone done) {
               name_ = std::move(name);
               done(Answer());
             }});
  }
  ~AdminDraftersTest() override { server_.reset(); }

  absl::StatusOr<v1::DrafterStatus> Answer() const {
    if (!refusal_.ok()) return refusal_;
    return drafters_.front();
  }

  Outcome Ask(std::vector<std::string> words) {
    words.insert(words.end(), {"--admin-address", server_->addresses().front()});
    const auto options = ParseAdminFlags(words);
    EXPECT_THAT(options, IsOk());
    return admin::Run(*options);
  }

  std::vector<v1::DrafterStatus> drafters_ = {Drafter("a", v1::DRAFTER_STATE_SERVING)};
  absl::Status refusal_;  // unless it is OK, what every change is answered with
  bool unchanged_ = false;
  std::string name_;                         // the last that was named
  std::optional<v1::DrafterSource> source_;  // the last that came
  AdminServiceImpl service_;
  std::unique_ptr<GrpcServer> server_;
};

TEST_F(AdminDraftersTest, ATableTellsOfEachDrafterWithoutControlCharacters) {
  drafters_ = {Drafter("long-name", v1::DRAFTER_STATE_DRAINING),
               Drafter("b\x1b[2J", v1::DRAFTER_STATE_LOADING)};
  const Outcome outcome = Ask({"drafters"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.out,
            "NAME       VERSION  STATE     SINCE                 SESSIONS  FOLDER\n"
            "long-name  5eed     draining  2023-11-14T22:13:20Z  3         /heads/long-name\n"
            "b?[2J      -        loading   2023-11-14T22:13:20Z  3         /heads/b?[2J\n");
}

TEST_F(AdminDraftersTest, TheListIsToBeHadAsJson) {
  EXPECT_THAT(Ask({"drafters", "--json"}).out,
              AllOf(HasSubstr("\"state\":\"DRAFTER_STATE_SERVING\""), HasSubstr("\"name\":\"a\"")));
}

TEST_F(AdminDraftersTest, LoadSendsWhatWasGivenAndSaysWhatServes) {
  const Outcome outcome = Ask({"load", "a", "/heads/x", "--target", "/t", "--norm-output", "true"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.out, "drafter a version 5eed takes sessions\n");
  ASSERT_TRUE(source_.has_value());
  EXPECT_EQ(source_->name(), "a");
  EXPECT_EQ(source_->folder(), "/heads/x");
  EXPECT_EQ(source_->target(), "/t");
  EXPECT_TRUE(source_->norm_output());
  EXPECT_FALSE(source_->has_rope_theta());
}

TEST_F(AdminDraftersTest, ARefusedChangeExitsWith5InTheServersWords) {
  refusal_ = absl::AlreadyExistsError("a drafter is called \"a\" already; expected a new name");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"load", "a", "/heads/x", "--target", "/t"},
        std::vector<std::string>{"reload", "a"}, std::vector<std::string>{"unload", "a"}}) {
    const Outcome outcome = Ask(words);
    EXPECT_EQ(outcome.code, kRefused);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("refused, and nothing has changed"),
                                   HasSubstr("called \"a\" already; expected a new name")));
  }
}

TEST_F(AdminDraftersTest, AServerThatDrainsGaveNoAnswer) {
  refusal_ = absl::UnavailableError("the server drains");
  const Outcome outcome = Ask({"unload", "a"});
  EXPECT_EQ(outcome.code, kNotAsked);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("gave no answer: the server drains"),
                                 Not(HasSubstr("nothing has changed"))));
}

TEST_F(AdminDraftersTest, WhenTheTimeIsUpNobodyKnowsWhetherItWasLoaded) {
  refusal_ = absl::DeadlineExceededError("late");
  const Outcome outcome = Ask({"reload"});
  EXPECT_EQ(outcome.code, kNotAsked);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("no answer in time"), HasSubstr("aerie-admin drafters"),
                                 Not(HasSubstr("nothing has changed"))));
}

TEST_F(AdminDraftersTest, ReloadWithoutFlagsSendsNoSource) {
  const Outcome outcome = Ask({"reload"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(name_, "");
  EXPECT_FALSE(source_.has_value());
  EXPECT_THAT(outcome.out, HasSubstr("version 5eed takes new sessions"));
  unchanged_ = true;
  EXPECT_THAT(Ask({"reload", "a"}).out, HasSubstr("is what is served already"));
  EXPECT_EQ(name_, "a");
}

TEST_F(AdminDraftersTest, ReloadFromAnotherFolderKeepsTheRest) {
  // The version before, which finishes its sessions, is not meant.
  v1::DrafterStatus before = Drafter("a", v1::DRAFTER_STATE_DRAINING);
  before.mutable_source()->set_target("/models/before");
  drafters_ = {before, Drafter("a", v1::DRAFTER_STATE_SERVING),
               Drafter("b", v1::DRAFTER_STATE_SERVING)};
  ASSERT_EQ(Ask({"reload", "a", "--folder", "/heads/new"}).code, kDone);
  ASSERT_TRUE(source_.has_value());
  EXPECT_EQ(source_->folder(), "/heads/new");
  EXPECT_EQ(source_->target(), "/models/t");
  EXPECT_THAT(source_->ignored_config_keys(), ::testing::ElementsAre("old"));

  ASSERT_EQ(Ask({"reload", "a", "--ignore-config-key", "new"}).code, kDone);
  EXPECT_EQ(source_->folder(), "/heads/a");
  EXPECT_THAT(source_->ignored_config_keys(), ::testing::ElementsAre("new"));
}

TEST_F(AdminDraftersTest, WhichOfSeveralIsMeantIsLeftToTheServer) {
  drafters_ = {Drafter("a", v1::DRAFTER_STATE_SERVING), Drafter("b", v1::DRAFTER_STATE_SERVING)};
  refusal_ = absl::NotFoundError("no drafter is called \"\"; expected one of: a, b");
  EXPECT_EQ(Ask({"reload", "--folder", "/heads/new"}).code, kRefused);
  EXPECT_EQ(source_->target(), "");
}

TEST_F(AdminDraftersTest, UnloadTellsHowManySessionsGoOn) {
  const Outcome outcome = Ask({"unload", "a"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(name_, "a");
  EXPECT_EQ(outcome.out, "drafter a version 5eed takes no new sessions; 3 finish on it\n");
}

}  // namespace
}  // namespace aerie::admin
