#include "common/log.h"

#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "spdlog/sinks/stdout_color_sinks.h"

namespace aerie {

absl::Status SetUpLog(const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  // from_str answers "off" to every unknown word.
  if (parsed == spdlog::level::off && level != "off") {
    return absl::InvalidArgumentError(
        absl::StrCat("log level is \"", level,
                     "\"; expected debug, info, warn, error or off; change --log-level"));
  }
  static std::once_flag once;
  std::call_once(once, [] {
    auto logger = spdlog::stderr_color_mt("aerie");
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
    logger->flush_on(spdlog::level::info);
    spdlog::set_default_logger(std::move(logger));
  });
  spdlog::set_level(parsed);
  return absl::OkStatus();
}

}  // namespace aerie
