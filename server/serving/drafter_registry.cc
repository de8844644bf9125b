#include "server/serving/drafter_registry.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

// What a checkpoint is called that is not given a name.
std::string NameOf(const DrafterOptions& source) {
  if (!source.name.empty()) return source.name;
  const std::filesystem::path path = std::filesystem::path(source.drafter).lexically_normal();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

absl::Status Draining() {
  return absl::UnavailableError(
      "the server drains; expected one that goes on; ask again once it has been started anew");
}

std::string Text(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

DrafterRegistry::DrafterRegistry(Surroundings around, ModelLoader loader, ServerMetrics* metrics)
    : around_(around), loader_(std::move(loader)), metrics_(metrics), thread_([this] { Run(); }) {}

DrafterRegistry::~DrafterRegistry() {
  {
    const MutexLock lock(&mutex_);
    draining_ = true;
    changed_.NotifyAll();
  }
  AwaitLoads();
}

void DrafterRegistry::AwaitLoads() {
  if (thread_.joinable()) thread_.join();
}

absl::Status DrafterRegistry::LoadAtStart(const DrafterOptions& source) {
  if (const MutexLock lock(&mutex_); Find(NameOf(source)) != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("two drafters are called \"", NameOf(source),
                     "\"; expected a name for each; give one of them another"));
  }
  AERIE_ASSIGN_OR_RETURN(std::shared_ptr<LoadedDrafter> drafter,
                         Make(source, nullptr, /*beside=*/false));
  return Take(source, std::move(drafter)).status();
}

void DrafterRegistry::Load(DrafterOptions source, Done done) {
  Post([this, source = std::move(source), done = std::move(done)](const absl::Status& ready) {
    if (!ready.ok()) return done(ready);
    const std::string name = NameOf(source);
    const bool known = IsServing(name);
    absl::StatusOr<DrafterStatus> loaded = LoadNow(source);
    if (!known) TellLoaded(name, loaded.status());
    done(std::move(loaded));
  });
}

void DrafterRegistry::Reload(std::string name, std::optional<DrafterOptions> source,
                             ReloadDone done) {
  Post([this, name = std::move(name), source = std::move(source),
        done = std::move(done)](const absl::Status& ready) mutable {
    if (!ready.ok()) return done(ready);
    if (const MutexLock lock(&mutex_); name.empty()) {
      const auto serving = [](const Entry& e) { return e.state == DrafterState::kServing; };
      if (std::count_if(entries_.begin(), entries_.end(), serving) == 1) {
        name = std::find_if(entries_.begin(), entries_.end(), serving)->drafter->spec().name;
      }
    }
    const bool known = IsServing(name);
    absl::StatusOr<Reloaded> reloaded = ReloadNow(name, source);
    if (known) TellLoaded(name, reloaded.status());
    done(std::move(reloaded));
  });
}

void DrafterRegistry::Unload(std::string name, Done done) {
  Post([this, name = std::move(name), done = std::move(done)](const absl::Status& ready) {
    done(ready.ok() ? UnloadNow(name) : ready);
  });
}

void DrafterRegistry::ReloadAll() {
  for (const ServedDrafterPtr& drafter : directory_.Current()) {
    Reload(drafter->name, std::nullopt, [](absl::StatusOr<Reloaded>) {});
  }
}

std::vector<DrafterStatus> DrafterRegistry::List() const {
  const MutexLock lock(&mutex_);
  std::vector<DrafterStatus> out;
  for (const Entry& entry : entries_) out.push_back(StatusOf(entry));
  if (loading_) {
    out.push_back({.name = NameOf(loading_->source),
                   .state = DrafterState::kLoading,
                   .since = loading_->since,
                   .sessions = 0,
                   .source = loading_->source,
                   .served = nullptr});
  }
  return out;
}

std::vector<WiringReport> DrafterRegistry::WiringReports() const {
  std::vector<WiringReport> out;
  const MutexLock lock(&mutex_);
  for (const Entry& entry : entries_) {
    for (WiringReport& report : entry.drafter->WiringReports()) out.push_back(std::move(report));
  }
  return out;
}

void DrafterRegistry::Tick(absl::Time now) {
  // Freed without the lock: an engine's thread is joined.
  std::vector<std::shared_ptr<LoadedDrafter>> freed;
  {
    const MutexLock lock(&mutex_);
    std::erase_if(entries_, [this](const Entry& entry) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (entry.state != DrafterState::kDraining) return false;
      // This one's and the directory's. A call that found it while it took new sessions may be
      // about to open one; only when there is no such call does it count how many are open.
      if (entry.drafter.use_count() > 2) return false;
      std::atomic_thread_fence(std::memory_order_acquire);
      if (entry.drafter->sessions() > 0) return false;
      directory_.Remove(LoadedDrafter::Served(entry.drafter).get());
      leaving_.push_back(entry.drafter);
      return true;
    });
    for (const Entry& entry : entries_) entry.drafter->Tick(now);
    // Nobody can find these any more, so a count of one stays one.
    for (std::shared_ptr<LoadedDrafter>& drafter : leaving_) {
      if (drafter.use_count() == 1) freed.push_back(std::move(drafter));
    }
    std::erase(leaving_, nullptr);
  }
  for (const std::shared_ptr<LoadedDrafter>& drafter : freed) {
    AERIE_LOG(info, "drafter {} version {}: its last session has ended, it is freed",
              drafter->spec().name, drafter->spec().version);
  }
}

bool DrafterRegistry::Drain(absl::Time deadline) {
  std::vector<std::shared_ptr<LoadedDrafter>> drafters;
  std::deque<std::function<void(const absl::Status&)>> work;
  {
    const MutexLock lock(&mutex_);
    draining_ = true;
    changed_.NotifyAll();
    work.swap(work_);
    for (const Entry& entry : entries_) drafters.push_back(entry.drafter);
  }
  for (const auto& refuse : work) refuse(Draining());
  // All are to begin before one is waited for.
  for (const auto& drafter : drafters) drafter->Drain(absl::InfinitePast());
  bool finished = true;
  for (const auto& drafter : drafters) finished = drafter->Drain(deadline) && finished;
  return finished;
}

void DrafterRegistry::Run() {
  while (true) {
    std::function<void(const absl::Status&)> next;
    {
      const MutexLock lock(&mutex_);
      changed_.WaitUntil(&mutex_, absl::InfiniteFuture(), [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return !work_.empty() || draining_;
      });
      if (draining_) break;
      next = std::move(work_.front());
      work_.pop_front();
    }
    next(absl::OkStatus());
  }
  std::deque<std::function<void(const absl::Status&)>> left;
  {
    const MutexLock lock(&mutex_);
    left.swap(work_);
  }
  for (const auto& refuse : left) refuse(Draining());
}

absl::StatusOr<DrafterStatus> DrafterRegistry::LoadNow(const DrafterOptions& source) {
  AERIE_RETURN_IF_ERROR(source.Validate());
  if (const MutexLock lock(&mutex_); Find(NameOf(source)) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "a drafter is called \"", NameOf(source),
        "\" already; expected a new name; give another one, or reload the one that there is"));
  }
  AERIE_ASSIGN_OR_RETURN(std::shared_ptr<LoadedDrafter> drafter,
                         Make(source, nullptr, /*beside=*/true));
  return Take(source, std::move(drafter));
}

absl::StatusOr<Reloaded> DrafterRegistry::ReloadNow(const std::string& name,
                                                    const std::optional<DrafterOptions>& source) {
  Entry current;
  {
    const MutexLock lock(&mutex_);
    const Entry* found = Find(name);
    if (found == nullptr) {
      std::vector<std::string> names;
      for (const Entry& entry : entries_) {
        if (entry.state == DrafterState::kServing) names.push_back(entry.drafter->spec().name);
      }
      return absl::NotFoundError(absl::StrCat("no drafter is called \"", name,
                                              "\"; expected one of: ", absl::StrJoin(names, ", "),
                                              "; correct the name, or load it as a new one"));
    }
    current = *found;
  }
  DrafterOptions from = source.value_or(current.source);
  from.name = name;
  AERIE_RETURN_IF_ERROR(from.Validate());
  AERIE_ASSIGN_OR_RETURN(std::shared_ptr<LoadedDrafter> drafter,
                         Make(from, current.drafter.get(), /*beside=*/true));
  if (drafter == nullptr) return Reloaded{StatusOf(current), /*unchanged=*/true};
  AERIE_ASSIGN_OR_RETURN(DrafterStatus taken, Take(from, std::move(drafter)));
  return Reloaded{std::move(taken), /*unchanged=*/false};
}

absl::StatusOr<DrafterStatus> DrafterRegistry::UnloadNow(const std::string& name) {
  const MutexLock lock(&mutex_);
  Entry* found = Find(name);
  if (found == nullptr) {
    return absl::NotFoundError(absl::StrCat("no drafter is called \"", name,
                                            "\"; expected one that is listed; correct the name"));
  }
  if (directory_.Current().size() == 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("\"", name,
                     "\" is the only drafter; expected another one that calls could go to; load "
                     "that first, or stop the server"));
  }
  directory_.Retire(name);
  found->state = DrafterState::kDraining;
  found->since = absl::Now();
  if (metrics_ != nullptr) metrics_->OnDrafterGone(name);
  NameInLog();
  AERIE_LOG(info, "drafter {}: unloaded; {} sessions finish on it", name,
            found->drafter->sessions());
  return StatusOf(*found);
}

absl::StatusOr<std::shared_ptr<LoadedDrafter>> DrafterRegistry::Make(const DrafterOptions& source,
                                                                     const LoadedDrafter* current,
                                                                     bool beside) {
  bool first = false;
  std::string tag;
  {
    const MutexLock lock(&mutex_);
    first = entries_.empty();
    tag = NextTag();
    loading_ = Entry{nullptr, source, DrafterState::kLoading, absl::Now()};
  }
  const MemoryCheck check = [this, &source, beside](const MemoryNeed& need) {
    // At the start who runs the server sees at once what comes of it, and no session is lost.
    if (!beside || around_.memory_room == nullptr) return absl::OkStatus();
    return CheckMemory(NameOf(source), need, around_.memory_room());
  };
  absl::StatusOr<LoadedModel> loaded = loader_(source, *around_.options, check);
  absl::StatusOr<std::shared_ptr<LoadedDrafter>> out = nullptr;
  if (!loaded.ok()) {
    out = loaded.status();
  } else if (current == nullptr ||
             !current->IsSameAs(loaded->model->spec(), loaded->guard_profile)) {
    if (!first && around_.options->record.enabled()) {
      AERIE_LOG(warn, "drafter {} is not recorded: --record is for the first one, as it was loaded",
                loaded->model->spec().name);
    }
    out = LoadedDrafter::Start(source, *std::move(loaded), around_, std::move(tag), first);
  }
  const MutexLock lock(&mutex_);
  loading_.reset();
  return out;
}

void DrafterRegistry::TellLoaded(const std::string& name, const absl::Status& status) {
  if (metrics_ != nullptr) metrics_->OnDrafterLoaded(name, status.ok(), absl::Now());
  if (status.ok()) return;
  AERIE_LOG(error, "drafter {} was not loaded: {}; what was served before goes on", name,
            Text(status));
}

bool DrafterRegistry::IsServing(const std::string& name) {
  const MutexLock lock(&mutex_);
  return Find(name) != nullptr;
}

void DrafterRegistry::Post(std::function<void(const absl::Status&)> work) {
  {
    const MutexLock lock(&mutex_);
    if (!draining_) {
      work_.push_back(std::move(work));
      changed_.NotifyAll();
      return;
    }
  }
  work(Draining());
}

DrafterStatus DrafterRegistry::StatusOf(const Entry& entry) const {
  return {.name = entry.drafter->spec().name,
          .state = entry.state,
          .since = entry.since,
          .sessions = entry.drafter->sessions(),
          .source = entry.source,
          .served = LoadedDrafter::Served(entry.drafter)};
}

DrafterRegistry::Entry* DrafterRegistry::Find(const std::string& name) {
  for (Entry& entry : entries_) {
    if (entry.state == DrafterState::kServing && entry.drafter->spec().name == name) return &entry;
  }
  return nullptr;
}

absl::StatusOr<DrafterStatus> DrafterRegistry::Take(const DrafterOptions& source,
                                                    std::shared_ptr<LoadedDrafter> drafter) {
  const DrafterSpec& spec = drafter->spec();
  if (metrics_ != nullptr) metrics_->OnDrafterKnown(spec.name);
  const MutexLock lock(&mutex_);
  if (draining_) return Draining();
  if (Entry* old = Find(spec.name); old != nullptr) {
    old->state = DrafterState::kDraining;
    old->since = absl::Now();
    AERIE_LOG(info, "drafter {}: version {} takes new sessions; {} finish on version {}", spec.name,
              spec.version, old->drafter->sessions(), old->drafter->spec().version);
  } else {
    AERIE_LOG(info, "drafter {}: version {} is loaded", spec.name, spec.version);
  }
  directory_.Serve(LoadedDrafter::Served(drafter));
  entries_.push_back({std::move(drafter), source, DrafterState::kServing, absl::Now()});
  NameInLog();
  return StatusOf(entries_.back());
}

void DrafterRegistry::NameInLog() {
  const std::vector<ServedDrafterPtr> current = directory_.Current();
  SetLogDrafter(current.size() == 1 ? current.front()->name : "");
}

std::string DrafterRegistry::NextTag() {
  while (true) {
    std::string tag = absl::StrFormat("%04x", ++tags_ & 0xffff);
    const bool taken = std::any_of(entries_.begin(), entries_.end(), [&tag](const Entry& entry) {
      return LoadedDrafter::Served(entry.drafter)->session_tag == tag;
    });
    if (!taken) return tag;
  }
}

}  // namespace aerie
