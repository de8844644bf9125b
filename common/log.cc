#include "common/log.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log_format.h"
#include "common/mutex.h"
#include "common/status_macros.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/sinks/stdout_sinks.h"

namespace aerie {
namespace {

const LogFields kNoFields;
thread_local const LogFields* current_fields = &kNoFields;

// Never destroyed: whoever logs last needs it.
struct Drafter {
  Mutex mutex;
  std::string name ABSL_GUARDED_BY(mutex);
};
Drafter& TheDrafter() {
  static Drafter* const drafter = new Drafter();
  return *drafter;
}

struct Level {
  const char* name;
  spdlog::level::level_enum level;
};
// spdlog itself reads every unknown word as "off".
constexpr Level kLevels[] = {{"debug", spdlog::level::debug},
                             {"info", spdlog::level::info},
                             {"warn", spdlog::level::warn},
                             {"error", spdlog::level::err},
                             {"off", spdlog::level::off}};

absl::StatusOr<spdlog::level::level_enum> ParseLevel(const std::string& level) {
  for (const Level& known : kLevels) {
    if (level == known.name) return known.level;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "log level is \"", level, "\"; expected debug, info, warn, error or off; name one of these"));
}

}  // namespace

LogScope::LogScope(LogFields fields)
    : fields_(std::move(fields)), outer_(std::exchange(current_fields, &fields_)) {}
LogScope::~LogScope() { current_fields = outer_; }

const LogFields* CurrentLogFields() { return current_fields; }

absl::StatusOr<LogFormat> ParseLogFormat(const std::string& format) {
  if (format == "text") return LogFormat::kText;
  if (format == "json") return LogFormat::kJson;
  return absl::InvalidArgumentError(
      absl::StrCat("log format is \"", format, "\"; expected text or json; change --log-format"));
}

absl::Status SetUpLog(const std::string& level, LogFormat format) {
  AERIE_ASSIGN_OR_RETURN(const auto parsed, ParseLevel(level));
  static std::once_flag once;
  std::call_once(once, [format] {
    const bool json = format == LogFormat::kJson;
    // Colour belongs to people's text only.
    auto logger = json ? spdlog::stderr_logger_mt("aerie") : spdlog::stderr_color_mt("aerie");
    logger->set_formatter(json ? JsonLogFormatter() : TextLogFormatter());
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(logger));
  });
  spdlog::set_level(parsed);
  return absl::OkStatus();
}

absl::Status ChangeLogLevel(const std::string& level, const std::string& who) {
  AERIE_ASSIGN_OR_RETURN(const auto after, ParseLevel(level));
  const auto before = spdlog::get_level();
  const std::string name = GetLogLevel();
  if (after < before) spdlog::set_level(after);
  // Who silences a server shall find in its log who did.
  spdlog::log(std::max(spdlog::level::info, spdlog::get_level()), "log level {}, was {}, by {}",
              level, name, who);
  spdlog::set_level(after);
  return absl::OkStatus();
}

std::string GetLogLevel() {
  for (const Level& known : kLevels) {
    if (spdlog::get_level() == known.level) return known.name;
  }
  return "info";  // SetUpLog() was not called: spdlog's own default
}

void SetLogDrafter(const std::string& name) {
  Drafter& drafter = TheDrafter();
  MutexLock lock(&drafter.mutex);
  drafter.name = name;
}

std::string LogDrafter() {
  Drafter& drafter = TheDrafter();
  MutexLock lock(&drafter.mutex);
  return drafter.name;
}

}  // namespace aerie
