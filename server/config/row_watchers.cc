#include "server/config/row_watchers.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "aerie_version.h"
#include "common/log.h"

namespace aerie {
namespace {

std::unique_ptr<LiveGuard> MakeGuard(GuardMode mode, const Wiring& wiring,
                                     std::optional<GuardProfile> profile, WiringObserver* observer,
                                     ServingGate* gate) {
  if (mode == GuardMode::kOff) return nullptr;
  LiveGuardOptions options{
      .profile = std::move(profile), .captures = wiring.size(), .observer = observer};
  if (mode == GuardMode::kNotServing) {
    options.on_worst = [gate, observer](WiringState worst) {
      gate->SetFit(observer, worst != WiringState::kWrong);
    };
  }
  return std::make_unique<LiveGuard>(std::move(options));
}

absl::StatusOr<std::unique_ptr<LiveRecorder>> MakeRecorder(const Options& options,
                                                           const DrafterSpec& spec) {
  const RecordOptions& record = options.record;
  if (!record.enabled()) return nullptr;
  auto recorder = LiveRecorder::Start(
      {.folder = record.folder,
       .limit_bytes = record.limit_bytes,
       .sessions = record.sessions,
       .wiring = spec.wiring,
       .target = {.id = "",
                  .num_layers = spec.target_num_layers,
                  .hidden_size = spec.target_hidden_size,
                  .vocab_size = spec.vocab_size},
       .source = absl::StrCat("sessions of aerie-server ", kVersion, " with the drafter ",
                              spec.name, ", from position 1 on"),
       .queue_bytes = 2 * options.grpc.max_message_bytes});
  // A server that is started again must come up, whatever its last run left behind.
  if (absl::IsAlreadyExists(recorder.status())) {
    AERIE_LOG(warn, "nothing is recorded: --record {}", std::string(recorder.status().message()));
    return nullptr;
  }
  if (recorder.ok()) return recorder;
  return absl::Status(recorder.status().code(),
                      absl::StrCat("--record ", recorder.status().message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RowWatchers>> RowWatchers::Start(
    const Options& options, const DrafterSpec& spec, bool record,
    std::optional<GuardProfile> profile, WiringObserver* observer, ServingGate* gate) {
  absl::StatusOr<std::unique_ptr<LiveRecorder>> recorder = nullptr;
  if (record) recorder = MakeRecorder(options, spec);
  if (!recorder.ok()) return recorder.status();
  return std::unique_ptr<RowWatchers>(new RowWatchers(
      MakeGuard(options.wiring_guard, spec.wiring, std::move(profile), observer, gate),
      *std::move(recorder), gate, observer));
}

RowWatchers::~RowWatchers() { gate_->SetFit(source_, true); }

RowWatchers::RowWatchers(std::unique_ptr<LiveGuard> guard, std::unique_ptr<LiveRecorder> recorder,
                         ServingGate* gate, const void* source)
    : gate_(gate),
      source_(source),
      guard_(std::move(guard)),
      recorder_(std::move(recorder)),
      all_([this] {
        std::vector<RowObserver*> observers;
        if (guard_ != nullptr) observers.push_back(guard_.get());
        if (recorder_ != nullptr) observers.push_back(recorder_.get());
        return observers;
      }()) {}

void RowWatchers::AddTo(ServedDrafter* drafter) const {
  if (guard_ != nullptr) {
    drafter->wiring_state = [guard = guard_.get()] { return guard->WorstState(); };
  }
  if (recorder_ != nullptr) {
    drafter->recording = [recorder = recorder_.get()] { return recorder->recording(); };
  }
}

std::vector<WiringReport> RowWatchers::Reports() const {
  return guard_ == nullptr ? std::vector<WiringReport>{} : guard_->Reports();
}

void RowWatchers::Tick(absl::Time now) {
  if (guard_ != nullptr) guard_->Tick(now);
}

}  // namespace aerie
