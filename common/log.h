// The program's log: one line an event on standard error, as text or as JSON.
//
//   AERIE_LOG(info, "listening on {}", address);      levels: debug, info, warn, error
//   AERIE_LOG_ABOUT(debug, LogFields({.session = id}), "refused: {}", why);
//
// The fields of AERIE_LOG_ABOUT are not looked at when the level is off, so they may cost
// something.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "spdlog/spdlog.h"

#define AERIE_LOG(level, ...) ::spdlog::level(__VA_ARGS__)

#define AERIE_LOG_ABOUT(level, fields, ...)               \
  if (!::spdlog::should_log(::aerie::log_level::level)) { \
  } else {                                                \
    const ::aerie::LogScope aerie_log_scope(fields);      \
    ::spdlog::level(__VA_ARGS__);                         \
  }

namespace aerie {

namespace log_level {
inline constexpr auto debug = spdlog::level::debug;
inline constexpr auto info = spdlog::level::info;
inline constexpr auto warn = spdlog::level::warn;
inline constexpr auto error = spdlog::level::err;
}  // namespace log_level

// What a line is about, beside its words; empty: nothing of that kind.
struct LogFields {
  std::string session;
  std::string trace;  // the W3C trace id, 32 hexadecimal digits
};

// Lines that this thread logs while it lives are about these fields.
class LogScope {
 public:
  explicit LogScope(LogFields fields);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

 private:
  const LogFields fields_;
  const LogFields* const outer_;
};

enum class LogFormat { kText, kJson };

// INVALID_ARGUMENT for another word than "text" and "json".
absl::StatusOr<LogFormat> ParseLogFormat(const std::string& format);

// Sets up the format, which is that of the first call, and the level ("debug", "info", "warn",
// "error", "off"). INVALID_ARGUMENT for another word.
absl::Status SetUpLog(const std::string& level, LogFormat format = LogFormat::kText);

// Changes the level of a running program, on behalf of `who` ("signal 10"), and says so in the log
// at the more talkative of both levels; any thread. INVALID_ARGUMENT as above.
absl::Status ChangeLogLevel(const std::string& level, const std::string& who);
std::string GetLogLevel();

// What the lines of a JSON log call the drafter from now on. Any thread.
void SetLogDrafter(const std::string& name);

}  // namespace aerie
