#include "server/transport/server_info.h"

#include "common/rpc/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_draft_model.h"

namespace aerie {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

// Values that are all different, so that no two fields can be swapped unseen.
v1::GetServerInfoResponse SomeInfo(int32_t window = 15) {
  DrafterSpec spec = FakeSpec();
  spec.name = "demo";
  spec.version = "0123";
  spec.draft_vocab_size = 77;
  spec.hidden_size = 5;
  spec.weight_bytes = int64_t{1} << 33;
  spec.settings = {{"rope_theta", "10000", "config.json: rope_theta"}};
  EngineOptions engine;
  engine.max_k = 11;
  engine.max_rows_per_call = 12;
  engine.max_sessions = 13;
  engine.max_context = 14;
  engine.session_lease = absl::Milliseconds(1500);
  engine.draft_window = window;
  engine.draft_sink = 16;
  const KvStore kv_store = {.page_rows = 4, .num_pages = 1 << 20, .page_bytes = 68 << 10};
  auto drafter = std::make_shared<ServedDrafter>();
  drafter->info = DescribeDrafter(spec);
  drafter->limits = DescribeLimits(engine, kv_store, {.max_message_bytes = 1 << 20});
  drafter->guard_profile = true;
  v1::GetServerInfoResponse info =
      BuildServerInfo({"v", "r", "c", "l"}, {{"max_k", "11", "flag --max-k"}}, GuardMode::kAlert);
  AddDrafters({drafter}, &info);
  return info;
}

TEST(ServerInfoTest, SaysWhatAManifestHasToSay) {
  const v1::GetServerInfoResponse info = SomeInfo();
  ASSERT_THAT(info.drafters(), SizeIs(1));
  const v1::DrafterInfo& drafter = info.drafters(0);
  EXPECT_EQ(drafter.name(), "demo");
  EXPECT_EQ(drafter.version(), "0123");
  EXPECT_EQ(drafter.target_num_layers(), 8u);
  EXPECT_EQ(drafter.target_hidden_size(), 4u);
  EXPECT_EQ(drafter.vocab_size(), 101u);
  EXPECT_EQ(rpc::DecodeWiring(drafter.captures(), 8).value(), FakeSpec().wiring);
}

TEST(ServerInfoTest, SaysWhatTheDrafterIsAndWhereItsSettingsCameFrom) {
  const v1::GetServerInfoResponse info = SomeInfo();
  const v1::DrafterInfo& drafter = info.drafters(0);
  EXPECT_EQ(drafter.draft_vocab_size(), 77u);
  EXPECT_EQ(drafter.hidden_size(), 5u);
  EXPECT_EQ(drafter.weight_bytes(), uint64_t{1} << 33);
  ASSERT_THAT(drafter.settings(), SizeIs(1));
  EXPECT_EQ(drafter.settings(0).source(), "config.json: rope_theta");
  ASSERT_THAT(info.settings(), SizeIs(1));
  EXPECT_EQ(info.settings(0).source(), "flag --max-k");
}

TEST(ServerInfoTest, SaysProtocolBuildLimitsDTypesAndTransports) {
  const v1::GetServerInfoResponse info = SomeInfo();
  EXPECT_EQ(info.protocol_version(), 1u);
  EXPECT_EQ(info.build().version(), "v");
  EXPECT_EQ(info.build().revision(), "r");
  EXPECT_EQ(info.build().compiler(), "c");
  EXPECT_EQ(info.build().libtorch(), "l");
  EXPECT_EQ(info.limits().max_k(), 11u);
  EXPECT_EQ(info.limits().max_rows_per_call(), 12u);
  EXPECT_EQ(info.limits().max_sessions(), 13u);
  EXPECT_EQ(info.limits().max_context(), 14u);
  EXPECT_EQ(info.limits().max_message_bytes(), uint64_t{1} << 20);
  EXPECT_EQ(rpc::DecodeDuration(info.limits().session_lease()), absl::Milliseconds(1500));
  EXPECT_THAT(info.dtypes(), ElementsAre(v1::DATA_TYPE_FLOAT32, v1::DATA_TYPE_FLOAT16,
                                         v1::DATA_TYPE_BFLOAT16, v1::DATA_TYPE_FLOAT8_E4M3FN));
  EXPECT_THAT(info.transports(), ElementsAre(v1::TRANSPORT_INLINE));
}

TEST(ServerInfoTest, SaysWhatTheGuardDoes) {
  const v1::GetServerInfoResponse info = SomeInfo();
  EXPECT_EQ(info.wiring_guard().mode(), v1::WIRING_GUARD_MODE_ALERT);
  EXPECT_TRUE(info.wiring_guard().profile());
  EXPECT_EQ(info.wiring_guard().worst(), v1::WIRING_STATE_UNSPECIFIED) << "is said with each call";
  EXPECT_FALSE(info.recording());
}

TEST(ServerInfoTest, SaysWhatTheDraftKvHoldsAndHowFarADraftLooksBack) {
  const v1::Limits limits = SomeInfo().limits();
  EXPECT_EQ(limits.kv_memory_bytes(), uint64_t{68} << 30) << "of all pages, beyond 32 bits";
  EXPECT_EQ(limits.kv_bytes_per_row(), 17u << 10);
  EXPECT_EQ(limits.draft_window(), 15u);
  EXPECT_EQ(limits.draft_sink(), 16u);
  EXPECT_EQ(SomeInfo(/*window=*/0).limits().draft_sink(), 0u) << "a sink stands beside a window";
}

TEST(RowsThatFitTest, AMessageOfSoManyRowsStaysWithinTheLimitAndOneRowMoreNeedNot) {
  for (const int64_t limit : {int64_t{64} << 10, int64_t{1} << 20, int64_t{64} << 20}) {
    for (const int64_t width : {12, 1728, 24576}) {
      const int32_t rows = RowsThatFit(limit, width);
      if (rows == 1) continue;  // the least that is answered
      v1::DraftRequest request;
      request.set_session_id(std::string(64, 'f'));
      request.set_seq(~uint64_t{0});
      request.set_base_length(~uint32_t{0});
      request.set_k(128);
      for (int32_t i = 0; i < rows; ++i) request.add_token_ids(0x7fffffffu);
      request.mutable_hidden_states()->set_dtype(v1::DATA_TYPE_FLOAT32);
      request.mutable_hidden_states()->mutable_data()->resize(
          static_cast<size_t>(rows * width * 4));
      EXPECT_LE(static_cast<int64_t>(request.ByteSizeLong()), limit) << width;
      EXPECT_GT(static_cast<int64_t>(request.ByteSizeLong()) + 16 * 1024 + width * 4 + 5, limit)
          << width;
    }
  }
}

TEST(RowsThatFitTest, IsAtLeastOne) { EXPECT_EQ(RowsThatFit(64 << 10, 1 << 20), 1); }

}  // namespace
}  // namespace aerie
