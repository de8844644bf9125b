#include "server/serving/loaded_drafter.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "server/config/guard_setup.h"
#include "server/engine/kv_limits.h"
#include "server/transport/server_info.h"

namespace aerie {
namespace {

std::string ValueOf(const std::vector<Setting>& settings, const std::string& name) {
  for (const Setting& setting : settings) {
    if (setting.name == name) return setting.value;
  }
  return {};
}

// The last part of the folder's path: what people call the model.
std::string NameOfTarget(const std::string& folder) {
  const std::filesystem::path path = std::filesystem::path(folder).lexically_normal();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

PrometheusOptions MetricsOf(const DrafterOptions& source, const DrafterSpec& spec,
                            const KvStore& kv_store, const Options& options) {
  PrometheusOptions out;
  out.labels = {spec.name, spec.version, NameOfTarget(source.target)};
  out.drafter.wiring = spec.wiring.ToString();
  out.drafter.device = options.compute.device;
  out.drafter.dtype = ValueOf(spec.settings, "compute_dtype");
  out.drafter.draft_vocab_size = spec.draft_vocab_size;
  out.drafter.hidden_size = spec.hidden_size;
  out.max_k = options.engine.max_k;
  out.max_sessions_per_pass = options.engine.max_sessions_per_pass;
  out.kv_pages = kv_store.num_pages;
  out.kv_page_bytes = kv_store.page_bytes;
  return out;
}

}  // namespace

absl::StatusOr<std::shared_ptr<LoadedDrafter>> LoadedDrafter::Start(const DrafterOptions& source,
                                                                    LoadedModel loaded,
                                                                    const Surroundings& around,
                                                                    std::string session_tag,
                                                                    bool record) {
  const Options& options = *around.options;
  const DrafterSpec spec = loaded.model->spec();
  const KvStore kv_store = loaded.model->kv_store();
  EngineOptions limits = options.engine;
  limits.session_tag = session_tag;
  // A client that keeps to the rows of a call never meets the limit of a message.
  limits.max_rows_per_call = std::min(
      limits.max_rows_per_call, RowsThatFit(options.grpc.max_message_bytes,
                                            spec.wiring.size() * int64_t{spec.target_hidden_size}));
  AERIE_RETURN_IF_ERROR(CheckKvFits(limits, kv_store));
  AERIE_ASSIGN_OR_RETURN(std::optional<GuardProfile> profile,
                         LoadGuardProfile(options.wiring_guard, loaded.guard_profile, spec.wiring,
                                          spec.target_hidden_size));
  AERIE_LOG(info, "{}: {}", spec.name, DescribeGuard(options.wiring_guard, profile));
  PrometheusOptions metrics = MetricsOf(source, spec, kv_store, options);
  metrics.wiring = WiringFactsOf(options.wiring_guard, spec.wiring, profile);

  std::shared_ptr<LoadedDrafter> out(new LoadedDrafter(metrics, loaded.guard_profile, around));
  std::vector<RoundObserver*> observers = {&out->metrics_, &out->counter_};
  if (around.request_log != nullptr) {
    out->request_log_ = around.request_log->ObserverOf({spec.name, spec.version});
    observers.push_back(out->request_log_.get());
  }
  out->observers_ = std::make_unique<RoundObserverList>(std::move(observers));
  const bool has_profile = profile.has_value();
  AERIE_ASSIGN_OR_RETURN(
      out->watchers_,
      RowWatchers::Start(options, spec, record, std::move(profile), &out->metrics_, around.gate));
  out->engine_ = std::make_unique<DraftEngine>(
      limits, std::move(loaded.model), out->observers_.get(), out->watchers_->row_observer());
  ServedDrafter& served = out->served_;
  served.name = spec.name;
  served.session_tag = std::move(session_tag);
  served.engine = out->engine_.get();
  served.round_observer = out->observers_.get();
  served.info = DescribeDrafter(spec);
  served.limits =
      DescribeLimits(limits, kv_store, {.max_message_bytes = options.grpc.max_message_bytes});
  DescribeClientLimits(options.clients, &served.limits);
  served.guard_profile = has_profile;
  out->watchers_->AddTo(&served);
  around.page->Add(out->page_key_, out->metrics_.metrics());
  return out;
}

LoadedDrafter::LoadedDrafter(const PrometheusOptions& metrics, std::string guard_profile,
                             const Surroundings& around)
    : guard_profile_(std::move(guard_profile)),
      page_(around.page),
      page_key_(absl::StrCat(metrics.labels.drafter, "\n", metrics.labels.version, "\n",
                             metrics.labels.target)),
      metrics_(metrics) {}

LoadedDrafter::~LoadedDrafter() { page_->Remove(page_key_, metrics_.metrics().get()); }

bool LoadedDrafter::IsSameAs(const DrafterSpec& other, const std::string& guard_profile) const {
  return spec().version == other.version && spec().settings == other.settings &&
         spec().wiring == other.wiring && guard_profile_ == guard_profile;
}

}  // namespace aerie
