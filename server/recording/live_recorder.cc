#include "server/recording/live_recorder.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/check.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "server/recording/recording_output.h"

namespace aerie {
namespace {

TensorClaim ClaimOf(const Capture& capture) {
  if (capture.kind == Capture::Kind::kFinalNorm) return {TensorClaim::Kind::kFinalNorm, 0};
  return {TensorClaim::Kind::kBoundary, capture.boundary};
}

std::string SampleName(int64_t session) { return absl::StrFormat("%05d", session); }

std::string PathIn(const std::string& folder, const std::string& name) {
  return std::filesystem::path(folder) / name;
}

}  // namespace

// Engine thread only.
class LiveRecorder::SessionRows final : public RowWatch {
 public:
  SessionRows(LiveRecorder& owner, const Manifest& manifest) : owner_(owner), manifest_(manifest) {}

  ~SessionRows() override {
    if (number_ > 0) owner_.PushEnd(number_, /*dropped=*/false);
  }

  void OnRows(int64_t base_length, absl::Span<const int32_t> tokens, const HiddenRows& rows,
              absl::Time) override {
    if (left_out_ || !owner_.recording()) return;
    if (number_ == 0) {
      // Takes its place only now: sessions that are opened ahead of need must not hold one.
      if (!owner_.TakePlace(manifest_)) {
        left_out_ = true;
        return;
      }
      number_ = ++owner_.last_session_;
    }
    last_base_ = base_length;
    if (first_judged_.has_value()) prompt_rows_ = *first_judged_;
    const bool taken = owner_.Push({.session = number_,
                                    .base = base_length,
                                    .tokens = {tokens.begin(), tokens.end()},
                                    .bytes = std::string(rows.bytes()),
                                    .prompt_rows = prompt_rows_});
    if (taken) return;
    owner_.PushEnd(std::exchange(number_, 0), /*dropped=*/true);
    left_out_ = true;
  }

  // The first draft is made behind the prompt, and judged by the call that follows it. A session
  // that ends there may have been judged by its end: only one that goes on tells for sure.
  void OnJudgement(const Judgement&, absl::Time) override {
    if (!first_judged_.has_value()) first_judged_ = last_base_;
  }

 private:
  LiveRecorder& owner_;
  const Manifest manifest_;
  int64_t number_ = 0;  // 0: it has no place
  int64_t last_base_ = 0;
  std::optional<int64_t> first_judged_;  // where the call began that judged the first draft
  int64_t prompt_rows_ = 0;
  bool left_out_ = false;
};

absl::StatusOr<std::unique_ptr<LiveRecorder>> LiveRecorder::Start(LiveRecorderOptions options) {
  AERIE_CHECK(options.limit_bytes > 0 && options.sessions > 0 && options.wiring.size() > 0);
  AERIE_RETURN_IF_ERROR(PrepareFolder(options.folder));
  AERIE_LOG(warn,
            "recording hidden states and tokens of up to {} sessions into {}, at most {} bytes; "
            "what people asked can be told from them",
            options.sessions, options.folder, options.limit_bytes);
  return std::unique_ptr<LiveRecorder>(new LiveRecorder(std::move(options)));
}

LiveRecorder::LiveRecorder(LiveRecorderOptions options) : options_(std::move(options)) {
  description_.target = options_.target;
  description_.source = options_.source;
  for (const Capture& capture : options_.wiring.captures()) {
    const std::string name = absl::StrCat("capture_", description_.tensors.size());
    description_.tensors.push_back(
        {name, absl::StrCat("sent as ", capture.ToString()), ClaimOf(capture)});
    shape_.tensors.push_back(name);
  }
  shape_.hidden_size = options_.target.hidden_size;
  thread_ = std::thread([this] { Run(); });
}

LiveRecorder::~LiveRecorder() {
  {
    const MutexLock lock(&mutex_);
    closing_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

std::unique_ptr<RowWatch> LiveRecorder::Watch(const WatchedRows& rows, absl::Time) {
  // A stateless call is no sequence that goes on, and a sample begins at its sequence's start.
  // Fused rows are no captures, and those are what a recording is of.
  if (rows.stateless || rows.first_row != 0 || rows.manifest.fused() || !recording()) {
    return nullptr;
  }
  return std::make_unique<SessionRows>(*this, rows.manifest);
}

bool LiveRecorder::recording() const {
  const MutexLock lock(&mutex_);
  return !stopped_;
}

int64_t LiveRecorder::dropped() const {
  const MutexLock lock(&mutex_);
  return dropped_;
}

bool LiveRecorder::TakePlace(const Manifest& manifest) {
  const MutexLock lock(&mutex_);
  if (stopped_ || places_taken_ >= options_.sessions) return false;
  if (!dtype_.has_value()) {
    dtype_ = manifest.dtype;
    target_id_ = manifest.target_id;
  }
  if (manifest.dtype != *dtype_ || manifest.target_id != target_id_) return false;
  ++places_taken_;
  return true;
}

bool LiveRecorder::Push(Item item) {
  const auto bytes = static_cast<int64_t>(item.bytes.size());
  const MutexLock lock(&mutex_);
  if (stopped_) return true;  // its end was settled when the recording stopped
  if (queued_bytes_ + bytes > options_.queue_bytes) return false;
  queued_bytes_ += bytes;
  queue_.push_back(std::move(item));
  changed_.NotifyAll();
  return true;
}

void LiveRecorder::PushEnd(int64_t session, bool dropped) {
  if (dropped) {
    AERIE_LOG(warn,
              "a session was dropped from the recording: {} bytes of rows wait for {}; expected a "
              "disk that keeps up; record fewer sessions at once, or to a faster one",
              options_.queue_bytes, options_.folder);
  }
  const MutexLock lock(&mutex_);
  if (dropped) ++dropped_;
  queue_.push_back({.session = session, .dropped = dropped});
  changed_.NotifyAll();
}

void LiveRecorder::Run() {
  while (true) {
    std::vector<Item> items;
    bool closing = false;
    {
      const MutexLock lock(&mutex_);
      changed_.WaitUntil(&mutex_, absl::InfiniteFuture(), [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return closing_ || !queue_.empty();
      });
      items.swap(queue_);
      closing = closing_;
    }
    for (Item& item : items) {
      Handle(item);
      const MutexLock lock(&mutex_);
      queued_bytes_ -= static_cast<int64_t>(item.bytes.size());
    }
    if (closing && items.empty()) break;
  }
  while (!open_.empty()) Finish(open_.begin()->first, /*keep=*/true);
}

void LiveRecorder::Handle(Item& item) {
  if (item.tokens.empty()) {
    // Of one that was left out, that was its end.
    if (left_out_.erase(item.session) == 0) Finish(item.session, /*keep=*/!item.dropped);
    return;
  }
  if (!recording() || left_out_.count(item.session) != 0) return;
  const absl::Status added = Add(item);
  if (added.ok()) return;
  if (absl::IsResourceExhausted(added)) {
    Stop(std::string(added.message()));
  } else if (absl::IsFailedPrecondition(added)) {
    AERIE_LOG(warn, "recording: {}", std::string(added.message()));
    left_out_.insert(item.session);
    Finish(item.session, /*keep=*/false);
  } else {
    Stop(std::string(added.message()));
  }
}

absl::Status LiveRecorder::Add(Item& item) {
  if (open_.empty() && description_.samples.empty()) {
    const MutexLock lock(&mutex_);
    description_.dtype = shape_.dtype = dtype_.value();
    description_.target.id = target_id_;
  }
  // Of an open session as much again: for a moment it is there twice, as it came and as a sample.
  const auto bytes = static_cast<int64_t>(item.bytes.size());
  const int64_t beside =
      SessionSpool::MostBytesBesideRows(shape_, static_cast<int64_t>(item.tokens.size()));
  if (BytesInUse() + 2 * bytes + beside > options_.limit_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the recording is full: --record-limit is ", options_.limit_bytes, " bytes"));
  }
  std::unique_ptr<SessionSpool>& spool = open_[item.session];
  if (spool == nullptr) {
    auto made = SessionSpool::Create(
        PathIn(options_.folder, absl::StrCat(SampleName(item.session), kSpoolSuffix)), shape_);
    if (!made.ok()) {
      open_.erase(item.session);
      return made.status();
    }
    spool = *std::move(made);
  }
  spool->set_prompt_rows(item.prompt_rows);
  return spool->Add(item.base, item.tokens, item.bytes);
}

int64_t LiveRecorder::BytesInUse() const {
  int64_t bytes = finished_bytes_;
  for (const auto& [session, spool] : open_) {
    bytes += 2 * spool->bytes() + SessionSpool::MostBytesBesideRows(shape_, spool->rows());
  }
  return bytes;
}

void LiveRecorder::Finish(int64_t session, bool keep) {
  const auto place = open_.find(session);
  absl::Status written = absl::CancelledError();
  if (place != open_.end()) {
    const std::unique_ptr<SessionSpool> spool = std::move(place->second);
    open_.erase(place);
    if (keep && spool->sample_tokens() > 0) written = WriteSample(*spool, session);
  }
  if (absl::IsUnavailable(written)) {
    Stop(std::string(written.message()));
    return;
  }
  bool complete = false;
  {
    const MutexLock lock(&mutex_);
    if (!written.ok() && !stopped_) --places_taken_;  // another session may have it
    complete = !stopped_ && static_cast<int32_t>(description_.samples.size()) >= options_.sessions;
  }
  if (complete) Stop("the recording is complete");
}

absl::Status LiveRecorder::WriteSample(const SessionSpool& spool, int64_t session) {
  const std::string name = SampleName(session);
  const std::string file = absl::StrCat(name, ".safetensors");
  AERIE_RETURN_IF_ERROR(spool.WriteSample(PathIn(options_.folder, file), name));
  description_.samples.push_back({name, spool.sample_tokens(), spool.prompt_tokens(), file});
  finished_bytes_ +=
      spool.rows() * shape_.row_bytes() + SessionSpool::MostBytesBesideRows(shape_, spool.rows());
  return ReplaceFile(PathIn(options_.folder, kRecordingFile),
                     RecordingDescriptionAsJson(description_));
}

void LiveRecorder::Stop(const std::string& why) {
  {
    const MutexLock lock(&mutex_);
    if (stopped_) return;
    stopped_ = true;
  }
  while (!open_.empty()) Finish(open_.begin()->first, /*keep=*/true);
  AERIE_LOG(warn, "{}; {} sessions are in {}, {} were dropped, and nothing more is recorded", why,
            description_.samples.size(), options_.folder, dropped());
}

}  // namespace aerie
