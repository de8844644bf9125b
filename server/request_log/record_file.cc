#include "server/request_log/record_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/rotating_file_sink.h"

namespace aerie {
namespace {

constexpr absl::Duration kRetryAfter = absl::Seconds(1);

// Before spdlog opens the file: it would make missing folders, and the file for everybody's eyes.
void MakePrivate(const spdlog::filename_t& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) spdlog::throw_spdlog_ex("cannot open it", errno);
  close(fd);
}

spdlog::file_event_handlers Handlers() {
  spdlog::file_event_handlers handlers;
  handlers.before_open = MakePrivate;
  return handlers;
}

}  // namespace

class RecordFile::Sink {
 public:
  // Throws spdlog::spdlog_ex, as Write() does.
  Sink(const std::string& path, int64_t max_bytes, int32_t max_files)
      : sink_(path, static_cast<size_t>(max_bytes), static_cast<size_t>(max_files - 1),
              /*rotate_on_open=*/false, Handlers()) {
    sink_.set_formatter(
        std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::local, "\n"));
  }

  void Write(const std::string& line) {
    sink_.log({"", spdlog::level::info, line});
    sink_.flush();  // each line: a full disk has to be noticed with the line that it costs
  }

 private:
  spdlog::sinks::rotating_file_sink_st sink_;
};

RecordFile::RecordFile(const std::string& path, int64_t max_bytes, int32_t max_files)
    : path_(path), max_bytes_(max_bytes), max_files_(max_files) {
  AERIE_CHECK(max_bytes >= 1 && max_files >= 1) << max_bytes << " bytes, " << max_files << " files";
}

RecordFile::~RecordFile() = default;

absl::StatusOr<std::unique_ptr<RecordFile>> RecordFile::Open(const std::string& path,
                                                             int64_t max_bytes, int32_t max_files) {
  std::unique_ptr<RecordFile> file(new RecordFile(path, max_bytes, max_files));
  AERIE_RETURN_IF_ERROR(file->OpenSink());
  return file;
}

absl::Status RecordFile::OpenSink() {
  try {
    sink_ = std::make_unique<Sink>(path_, max_bytes_, max_files_);
    return absl::OkStatus();
  } catch (const spdlog::spdlog_ex& error) {
    return absl::UnavailableError(error.what());
  }
}

absl::Status RecordFile::Write(const std::string& line, absl::Time now) {
  if (sink_ == nullptr) {
    if (now < retry_at_) return absl::UnavailableError(cause_);
    if (absl::Status opened = OpenSink(); !opened.ok()) {
      return Fail(std::string(opened.message()), now);
    }
  }
  try {
    sink_->Write(cut_short_ ? absl::StrCat("\n", line) : line);
  } catch (const spdlog::spdlog_ex& error) {
    return Fail(error.what(), now);
  }
  cut_short_ = false;
  return absl::OkStatus();
}

absl::Status RecordFile::Fail(const std::string& cause, absl::Time now) {
  // Not used again: after a rotation that failed the sink would write to a file that is closed.
  sink_.reset();
  cut_short_ = true;
  retry_at_ = now + kRetryAfter;
  cause_ = cause;
  return absl::UnavailableError(cause_);
}

}  // namespace aerie
