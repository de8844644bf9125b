// Records sessions of a running server, as a folder that aerie-verify reads.
//
// Sessions are recorded whole or not at all: one whose rows the disk cannot keep up with is
// dropped, since a gap would make all behind it worthless. What is finished is in recording.json at
// once. All sessions of a recording are of one target and one dtype: those of the first.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/wiring.h"
#include "server/engine/row_observer.h"
#include "server/recording/recording_description.h"
#include "server/recording/session_spool.h"

namespace aerie {

struct LiveRecorderOptions {
  std::string folder;              // new or empty
  int64_t limit_bytes = 0;         // of all files together, at any time; then it stops
  int32_t sessions = 0;            // then it stops
  Wiring wiring;                   // of the drafter: what workers say that they send
  RecordedTarget target;           // the id is the first session's
  std::string source;              // free text for people
  int64_t queue_bytes = 64 << 20;  // of rows that wait for the disk; more than a call's
};

class LiveRecorder final : public RowObserver {
 public:
  // Makes the folder and starts the thread that writes. Fails as PrepareFolder().
  static absl::StatusOr<std::unique_ptr<LiveRecorder>> Start(LiveRecorderOptions options);
  // Writes what waits, with the sessions that are still open. All watches must be gone.
  ~LiveRecorder() override;

  // Engine thread only.
  std::unique_ptr<RowWatch> Watch(const WatchedRows& rows, absl::Time now) override;

  // Any thread. False once it has stopped: full, complete or failed.
  bool recording() const;
  // Any thread. Sessions that were left out because rows came faster than the disk took them.
  int64_t dropped() const;

 private:
  class SessionRows;
  // Of one session; rows, or its end.
  struct Item {
    int64_t session = 0;
    int64_t base = 0;
    std::vector<int32_t> tokens;  // empty: the session ends here
    std::string bytes;
    int64_t prompt_rows = 0;  // as far as it is known; 0: it is not
    bool dropped = false;     // it ends, and is to be left out
  };

  explicit LiveRecorder(LiveRecorderOptions options);

  // Engine thread. False: the session is to be dropped, which has been noted.
  bool Push(Item item);
  void PushEnd(int64_t session, bool dropped);
  // Whether there is a place for one more session of this kind; takes it.
  bool TakePlace(const Manifest& manifest);

  // The thread that writes.
  void Run();
  void Handle(Item& item);
  absl::Status Add(Item& item);
  void Finish(int64_t session, bool keep);
  absl::Status WriteSample(const SessionSpool& spool, int64_t session);
  int64_t BytesInUse() const;
  // No row is taken from now on; finishes what is open. `why` is logged.
  void Stop(const std::string& why);

  const LiveRecorderOptions options_;

  mutable Mutex mutex_;
  Condition changed_;
  std::vector<Item> queue_ ABSL_GUARDED_BY(mutex_);
  int64_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // those in hand included
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int32_t places_taken_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<DType> dtype_ ABSL_GUARDED_BY(mutex_);  // of the first session, with target_id_
  std::string target_id_ ABSL_GUARDED_BY(mutex_);

  int64_t last_session_ = 0;  // engine thread only

  // The thread that writes only.
  std::map<int64_t, std::unique_ptr<SessionSpool>> open_;
  std::set<int64_t> left_out_;  // sessions of which nothing more is taken
  RecordingDescription description_;
  SpoolShape shape_;
  int64_t finished_bytes_ = 0;

  std::thread thread_;  // last: everything above must be there when it starts
};

}  // namespace aerie
