#include "server/serving/admin_drafters.h"

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "server/config/flag_readers.h"

namespace aerie {
namespace {

absl::StatusOr<DrafterOptions> Decode(const v1::DrafterSource& source) {
  DrafterOptions out;
  out.name = source.name();
  out.drafter = source.folder();
  out.target = source.target();
  out.embedding_key = source.embedding_key();
  if (!source.layer_id_convention().empty()) {
    AERIE_ASSIGN_OR_RETURN(out.layer_ids,
                           ReadConvention("layer-id-convention", source.layer_id_convention()));
  }
  if (source.has_norm_before_residual()) out.norm_before_residual = source.norm_before_residual();
  if (source.has_norm_output()) out.norm_output = source.norm_output();
  if (source.has_rope_theta()) out.rope_theta = source.rope_theta();
  out.ignored_config_keys.assign(source.ignored_config_keys().begin(),
                                 source.ignored_config_keys().end());
  return out;
}

void Encode(const DrafterOptions& source, v1::DrafterSource* out) {
  out->set_name(source.name);
  out->set_folder(source.drafter);
  out->set_target(source.target);
  out->set_embedding_key(source.embedding_key);
  if (source.layer_ids) out->set_layer_id_convention(ConventionName(*source.layer_ids));
  if (source.norm_before_residual) out->set_norm_before_residual(*source.norm_before_residual);
  if (source.norm_output) out->set_norm_output(*source.norm_output);
  if (source.rope_theta) out->set_rope_theta(*source.rope_theta);
  for (const std::string& key : source.ignored_config_keys) out->add_ignored_config_keys(key);
}

v1::DrafterState Encode(DrafterState state) {
  switch (state) {
    case DrafterState::kLoading:
      return v1::DRAFTER_STATE_LOADING;
    case DrafterState::kServing:
      return v1::DRAFTER_STATE_SERVING;
    case DrafterState::kDraining:
      return v1::DRAFTER_STATE_DRAINING;
  }
  AERIE_CHECK(false) << "no such state";
}

v1::DrafterStatus Encode(const DrafterStatus& drafter) {
  v1::DrafterStatus out;
  out.set_name(drafter.name);
  out.set_state(Encode(drafter.state));
  const int64_t nanos = absl::ToUnixNanos(drafter.since);
  out.mutable_since()->set_seconds(nanos / 1'000'000'000);
  out.mutable_since()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  out.set_sessions(static_cast<uint64_t>(drafter.sessions));
  if (drafter.served != nullptr) *out.mutable_info() = drafter.served->info;
  Encode(drafter.source, out.mutable_source());
  return out;
}

DrafterRegistry::Done Encoding(LoadDone done) {
  return [done = std::move(done)](absl::StatusOr<DrafterStatus> drafter) {
    if (!drafter.ok()) return done(drafter.status());
    done(Encode(*drafter));
  };
}

}  // namespace

void AddDrafters(DrafterRegistry* registry, AdminBackend* backend) {
  backend->list_drafters = [registry] {
    std::vector<v1::DrafterStatus> out;
    for (const DrafterStatus& drafter : registry->List()) out.push_back(Encode(drafter));
    return out;
  };
  backend->load_drafter = [registry](v1::DrafterSource source, LoadDone done) {
    absl::StatusOr<DrafterOptions> options = Decode(source);
    if (!options.ok()) return done(options.status());
    registry->Load(*std::move(options), Encoding(std::move(done)));
  };
  backend->reload_drafter = [registry](std::string name, std::optional<v1::DrafterSource> source,
                                       ReloadDone done) {
    std::optional<DrafterOptions> from;
    if (source) {
      absl::StatusOr<DrafterOptions> options = Decode(*source);
      if (!options.ok()) return done(options.status());
      from = *std::move(options);
    }
    registry->Reload(std::move(name), std::move(from),
                     [done = std::move(done)](absl::StatusOr<Reloaded> reloaded) {
                       if (!reloaded.ok()) return done(reloaded.status());
                       v1::ReloadDrafterResponse response;
                       *response.mutable_drafter() = Encode(reloaded->drafter);
                       response.set_unchanged(reloaded->unchanged);
                       done(std::move(response));
                     });
  };
  backend->unload_drafter = [registry](std::string name, LoadDone done) {
    registry->Unload(std::move(name), Encoding(std::move(done)));
  };
}

}  // namespace aerie
