// A file of lines that starts anew when it is full: FILE is written, FILE.1, FILE.2 and so on are
// older (FILE.1.jsonl when FILE ends in .jsonl).
//
// A write that fails loses its line and costs nothing else: the file is opened again with a later
// line. What was written of the lost line may stay behind as a line that is cut short.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace aerie {

// One thread at a time.
class RecordFile {
 public:
  // `max_bytes` of one file, `max_files` of them, the one that is written included; both >= 1. A
  // file that is made is readable by its owner alone; one that is there is added to and keeps its
  // permissions. UNAVAILABLE: it cannot be opened.
  static absl::StatusOr<std::unique_ptr<RecordFile>> Open(const std::string& path,
                                                          int64_t max_bytes, int32_t max_files);
  ~RecordFile();

  // Adds `line`, which has no line break, and hands it to the system. UNAVAILABLE: it is lost.
  // After that the file is tried again once a second.
  absl::Status Write(const std::string& line, absl::Time now);

 private:
  class Sink;

  RecordFile(const std::string& path, int64_t max_bytes, int32_t max_files);
  absl::Status OpenSink();
  absl::Status Fail(const std::string& cause, absl::Time now);

  const std::string path_;
  const int64_t max_bytes_;
  const int32_t max_files_;
  std::unique_ptr<Sink> sink_;  // nullptr after a failure
  bool cut_short_ = false;      // the last line in the file may have no end
  absl::Time retry_at_ = absl::InfinitePast();
  std::string cause_;  // of the last failure
};

}  // namespace aerie
