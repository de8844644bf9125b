// The registry over engines with fake models: loading, swapping and letting go, no gRPC and no
// checkpoint.
#include "server/serving/drafter_registry.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/metrics/exposition.h"
#include "tests/testing/fake_draft_model.h"
#include "tests/testing/sequences.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;

DrafterOptions Source(const std::string& name) {
  DrafterOptions source;
  source.name = name;
  source.drafter = "/heads/" + name;
  source.target = "/models/target";
  return source;
}

class DrafterRegistryTest : public testing::Test {
 protected:
  DrafterRegistryTest() {
    options_.wiring_guard = GuardMode::kOff;
    EXPECT_TRUE(registry_->LoadAtStart(Source("a")).ok());
  }
  ~DrafterRegistryTest() override { registry_.reset(); }

  absl::StatusOr<LoadedModel> LoadFake(const DrafterOptions& source, const MemoryCheck& check) {
    if (source.drafter == "/heads/broken")
      return absl::NotFoundError("no config.json; expected it");
    if (const absl::Status room = check({.weights = 100, .draft_kv = 1000}); !room.ok())
      return room;
    ++loads_;
    FakeDraftModelOptions model;
    model.spec.name = source.name;
    model.spec.version = versions_[source.name];
    return LoadedModel{std::make_unique<FakeDraftModel>(std::move(model)), ""};
  }

  absl::StatusOr<DrafterStatus> Load(const DrafterOptions& source) {
    return Await<DrafterStatus>([&](auto done) { registry_->Load(source, std::move(done)); });
  }
  absl::StatusOr<Reloaded> Reload(const std::string& name,
                                  std::optional<DrafterOptions> source = std::nullopt) {
    return Await<Reloaded>(
        [&](auto done) { registry_->Reload(name, std::move(source), std::move(done)); });
  }
  absl::StatusOr<DrafterStatus> Unload(const std::string& name) {
    return Await<DrafterStatus>([&](auto done) { registry_->Unload(name, std::move(done)); });
  }

  template <typename Result>
  static absl::StatusOr<Result> Await(
      const std::function<void(std::function<void(absl::StatusOr<Result>)>)>& ask) {
    absl::Notification answered;
    absl::StatusOr<Result> answer = absl::UnknownError("no answer");
    ask([&](absl::StatusOr<Result> given) {
      answer = std::move(given);
      answered.Notify();
    });
    answered.WaitForNotification();
    return answer;
  }

  // A session of the drafter that takes new ones; its id.
  std::string Open(const std::string& name) {
    const ServedDrafterPtr drafter = registry_->directory().ForManifest(name).value();
    return Await<OpenResult>([&](auto done) {
             drafter->engine->Open(FittingManifest(drafter->engine->spec(), DType::kF32), {},
                                   std::move(done));
           })
        .value()
        .session_id;
  }
  absl::Status Close(const std::string& id) {
    const ServedDrafterPtr drafter = registry_->directory().ForSession(id).value();
    return Await<AcceptanceRecord>([&](auto done) {
             drafter->engine->Close(id, {}, SessionEnd::kClosed, std::move(done));
           })
        .status();
  }
  void TickUntilFreed(size_t left) {
    // The engine's thread lets go of a call's reference a moment after the answer.
    while (registry_->List().size() > left) registry_->Tick(absl::Now());
  }
  std::string VersionOf(const std::string& id) {
    return registry_->directory().ForSession(id).value()->engine->spec().version;
  }
  double Metric(const std::string& name, const Labels& labels = {}) {
    return Exposition(page_).Sum(name, labels);
  }

  Options options_;
  std::map<std::string, std::string> versions_ = {{"a", "1"}, {"b", "1"}};
  ServingGate gate_{[](bool) {}};
  ServerMetrics metrics_{{}};
  MetricPage page_{metrics_.metrics()};
  MemoryRoom room_{10'000, "a test"};
  int loads_ = 0;  // that were let through
  std::unique_ptr<DrafterRegistry> registry_ = std::make_unique<DrafterRegistry>(
      Surroundings{.options = &options_,
                   .gate = &gate_,
                   .page = &page_,
                   .memory_room = [this] { return room_; }},
      [this](const DrafterOptions& source, const Options&, const MemoryCheck& check) {
        return LoadFake(source, check);
      },
      &metrics_);
};

TEST_F(DrafterRegistryTest, LoadsOneMoreUnderANewName) {
  const absl::StatusOr<DrafterStatus> loaded = Load(Source("b"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->name, "b");
  EXPECT_EQ(loaded->state, DrafterState::kServing);
  EXPECT_NE(Open("a").substr(0, kSessionTagLength), Open("b").substr(0, kSessionTagLength));
  EXPECT_EQ(Metric("aerie_sessions", {{"drafter", "b"}}), 1);
  EXPECT_EQ(Load(Source("b")).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(DrafterRegistryTest, RefusesALoadForWhichThereIsNoMemoryAndServesAsBefore) {
  const std::string session = Open("a");
  versions_["a"] = "2";
  room_ = {1099, "a test"};
  const absl::Status reload = Reload("a").status();
  EXPECT_EQ(reload.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(reload.message()), HasSubstr("drafter a takes"));
  EXPECT_THAT(std::string(reload.message()), HasSubstr("(a test); expected room"));
  EXPECT_EQ(Load(Source("b")).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(loads_, 1) << "none was begun but the one of the start";
  EXPECT_EQ(VersionOf(session), "1");
  EXPECT_EQ(VersionOf(Open("a")), "1");
  EXPECT_EQ(Metric("aerie_drafter_reloads_total", {{"drafter", "a"}, {"result", "failed"}}), 1);
  room_ = {1100, "a test"};
  ASSERT_TRUE(Reload("a").ok());
  EXPECT_EQ(VersionOf(Open("a")), "2");
}

TEST_F(DrafterRegistryTest, LooksForNoMemoryAtTheStart) {
  room_ = {0, "a test"};
  EXPECT_TRUE(registry_->LoadAtStart(Source("b")).ok());
}

TEST_F(DrafterRegistryTest, SwapsAVersionAndLetsTheOldOneFinishItsSessions) {
  const std::string old_session = Open("a");
  versions_["a"] = "2";
  const absl::StatusOr<Reloaded> reloaded = Reload("a");
  ASSERT_TRUE(reloaded.ok()) << reloaded.status();
  EXPECT_FALSE(reloaded->unchanged);
  const std::string new_session = Open("a");
  EXPECT_EQ(VersionOf(old_session), "1");
  EXPECT_EQ(VersionOf(new_session), "2");
  registry_->Tick(absl::Now());
  ASSERT_EQ(registry_->List().size(), 2u);
  EXPECT_EQ(registry_->List()[0].state, DrafterState::kDraining);
  EXPECT_EQ(registry_->List()[0].sessions, 1);
  EXPECT_EQ(Exposition(page_).Count("aerie_sessions"), 2);

  EXPECT_TRUE(Close(old_session).ok());
  TickUntilFreed(1);
  EXPECT_EQ(registry_->List()[0].served->engine->spec().version, "2");
  EXPECT_EQ(Exposition(page_).Count("aerie_sessions"), 1);
  EXPECT_EQ(VersionOf(new_session), "2");
}

TEST_F(DrafterRegistryTest, KeepsAVersionThatACallHasFoundAndNotYetOpenedASessionOn) {
  ServedDrafterPtr found = registry_->directory().ForManifest("a").value();
  versions_["a"] = "2";
  ASSERT_TRUE(Reload("a").ok());
  registry_->Tick(absl::Now());
  EXPECT_EQ(registry_->List().size(), 2u);
  EXPECT_EQ(registry_->directory().ForSession(found->session_tag + "00").value(), found);
  found.reset();
  TickUntilFreed(1);
}

TEST_F(DrafterRegistryTest, ReplacesNothingByTheSame) {
  const absl::StatusOr<Reloaded> reloaded = Reload("");
  ASSERT_TRUE(reloaded.ok()) << reloaded.status();
  EXPECT_TRUE(reloaded->unchanged);
  EXPECT_EQ(registry_->List().size(), 1u);
  EXPECT_EQ(Metric("aerie_drafter_reloads_total", {{"drafter", "a"}, {"result", "ok"}}), 1);
}

TEST_F(DrafterRegistryTest, LeavesEverythingAsItWasWhenALoadFails) {
  const std::string session = Open("a");
  DrafterOptions broken = Source("broken");
  EXPECT_EQ(Reload("a", broken).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Load(broken).status().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(registry_->List().size(), 1u);
  EXPECT_EQ(registry_->List()[0].state, DrafterState::kServing);
  EXPECT_EQ(VersionOf(Open("a")), "1");
  EXPECT_TRUE(Close(session).ok());
  EXPECT_EQ(Metric("aerie_drafter_last_reload_successful", {{"drafter", "a"}}), 0);
  versions_["a"] = "2";
  EXPECT_TRUE(Reload("a").ok()) << "from where it came, not from where it did not";
  EXPECT_EQ(Metric("aerie_drafter_last_reload_successful", {{"drafter", "a"}}), 1);
}

TEST_F(DrafterRegistryTest, NamesTheDraftersThatThereAreWhenOneIsNotThere) {
  EXPECT_THAT(std::string(Reload("c").status().message()), HasSubstr("expected one of: a"));
  EXPECT_EQ(Unload("c").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DrafterRegistryTest, UnloadsAllButTheLast) {
  ASSERT_TRUE(Load(Source("b")).ok());
  const std::string session = Open("a");
  ASSERT_TRUE(Unload("a").ok());
  EXPECT_EQ(Unload("b").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(registry_->directory().ForManifest("a").ok());
  EXPECT_TRUE(Close(session).ok());
  TickUntilFreed(1);
  EXPECT_EQ(registry_->List()[0].name, "b");
}

TEST_F(DrafterRegistryTest, LoadsNothingOnceItDrains) {
  EXPECT_TRUE(registry_->Drain(absl::InfiniteFuture()));
  EXPECT_EQ(Load(Source("b")).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Reload("a").status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace aerie
