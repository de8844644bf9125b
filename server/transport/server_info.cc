#include "server/transport/server_info.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "common/rpc/codec.h"
#include "common/rpc/wiring_report_codec.h"

namespace aerie {
namespace {

// Room for all that is not rows: ids, a manifest, tags and lengths.
constexpr int64_t kOverheadBytes = 16 * 1024;
constexpr int64_t kWidestElementBytes = 4;  // float32
constexpr int64_t kTokenBytes = 5;          // a varint of 32 bits

}  // namespace

v1::GetServerInfoResponse BuildServerInfo(const BuildInfo& build,
                                          const std::vector<Setting>& settings, GuardMode guard) {
  v1::GetServerInfoResponse info;
  info.set_protocol_version(kProtocolVersion);
  info.mutable_build()->set_version(build.version);
  info.mutable_build()->set_revision(build.revision);
  info.mutable_build()->set_compiler(build.compiler);
  info.mutable_build()->set_libtorch(build.libtorch);
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    info.add_dtypes(rpc::EncodeDType(dtype));
  }
  info.add_dtypes(v1::DATA_TYPE_FLOAT8_E4M3FN);
  info.add_transports(v1::TRANSPORT_INLINE);
  for (const Setting& setting : settings) rpc::EncodeSetting(setting, info.add_settings());
  info.mutable_wiring_guard()->set_mode(rpc::EncodeGuardMode(guard));
  return info;
}

v1::DrafterInfo DescribeDrafter(const DrafterSpec& spec) {
  v1::DrafterInfo drafter;
  drafter.set_name(spec.name);
  drafter.set_version(spec.version);
  rpc::EncodeWiring(spec.wiring, drafter.mutable_captures());
  drafter.set_target_num_layers(static_cast<uint32_t>(spec.target_num_layers));
  drafter.set_target_hidden_size(static_cast<uint32_t>(spec.target_hidden_size));
  drafter.set_vocab_size(static_cast<uint32_t>(spec.vocab_size));
  drafter.set_draft_vocab_size(static_cast<uint32_t>(spec.draft_vocab_size));
  drafter.set_hidden_size(static_cast<uint32_t>(spec.hidden_size));
  drafter.set_weight_bytes(static_cast<uint64_t>(spec.weight_bytes));
  drafter.set_fc_digest(spec.fc_digest);
  for (const Setting& setting : spec.settings) {
    rpc::EncodeSetting(setting, drafter.add_settings());
  }
  return drafter;
}

v1::Limits DescribeLimits(const EngineOptions& engine, const KvStore& kv_store,
                          const ServiceLimits& service) {
  v1::Limits limits;
  limits.set_max_k(static_cast<uint32_t>(engine.max_k));
  limits.set_max_rows_per_call(static_cast<uint32_t>(engine.max_rows_per_call));
  limits.set_max_message_bytes(static_cast<uint64_t>(service.max_message_bytes));
  limits.set_max_sessions(static_cast<uint32_t>(engine.max_sessions));
  limits.set_max_batch_requests(static_cast<uint32_t>(service.max_stream_in_flight));
  limits.set_max_context(static_cast<uint32_t>(engine.max_context));
  rpc::EncodeDuration(engine.session_lease, limits.mutable_session_lease());
  limits.set_kv_memory_bytes(static_cast<uint64_t>(kv_store.num_pages * kv_store.page_bytes));
  limits.set_kv_bytes_per_row(static_cast<uint64_t>(kv_store.page_bytes / kv_store.page_rows));
  limits.set_draft_window(static_cast<uint32_t>(engine.draft_window));
  // Without a window there is nothing beside which a sink would stand.
  limits.set_draft_sink(static_cast<uint32_t>(engine.draft_window > 0 ? engine.draft_sink : 0));
  limits.set_max_sessions_per_client(static_cast<uint32_t>(engine.max_sessions_per_client));
  limits.set_max_queued_per_client(static_cast<uint32_t>(engine.max_queued_per_client));
  for (const auto& [target, quota] : engine.target_quotas) {
    v1::TargetQuota* const out = limits.add_target_quotas();
    out->set_target(target);
    out->set_sessions(static_cast<uint32_t>(quota.sessions));
    out->set_rows_per_second(static_cast<uint32_t>(quota.rows_per_second));
  }
  return limits;
}

void DescribeClientLimits(const ClientLimitOptions& clients, v1::Limits* limits) {
  limits->set_max_rows_per_second_per_client(static_cast<uint32_t>(clients.max_rows_per_second));
  limits->set_row_burst_per_client(static_cast<uint32_t>(clients.burst()));
  limits->set_max_bytes_in_flight_per_client(static_cast<uint64_t>(clients.max_bytes_in_flight));
}

void AddDrafters(const std::vector<ServedDrafterPtr>& drafters, v1::GetServerInfoResponse* info) {
  bool profile = !drafters.empty(), recording = false;
  std::optional<WiringState> worst;
  for (const ServedDrafterPtr& drafter : drafters) {
    *info->add_drafters() = drafter->info;
    if (!info->has_limits()) *info->mutable_limits() = drafter->limits;
    info->mutable_limits()->set_max_rows_per_call(
        std::min(info->limits().max_rows_per_call(), drafter->limits.max_rows_per_call()));
    profile = profile && drafter->guard_profile;
    recording = recording || (drafter->recording && drafter->recording());
    if (!drafter->wiring_state) continue;
    const WiringState state = drafter->wiring_state();
    if (!worst || IsWorse(state, *worst)) worst = state;
  }
  info->mutable_wiring_guard()->set_profile(profile);
  info->set_recording(recording);
  if (worst) info->mutable_wiring_guard()->set_worst(rpc::EncodeWiringState(*worst));
}

int32_t RowsThatFit(int64_t max_message_bytes, int64_t row_width) {
  const int64_t rows =
      (max_message_bytes - kOverheadBytes) / (row_width * kWidestElementBytes + kTokenBytes);
  return static_cast<int32_t>(std::clamp<int64_t>(rows, 1, std::numeric_limits<int32_t>::max()));
}

}  // namespace aerie
