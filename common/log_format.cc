#include "common/log_format.h"

#include <utility>

#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "spdlog/pattern_formatter.h"

namespace aerie {
namespace {

void Append(std::string_view text, spdlog::memory_buf_t& out) {
  out.append(text.data(), text.data() + text.size());
}

void AppendEscaped(std::string_view text, spdlog::memory_buf_t& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte != 0x7f) {
      out.push_back(letter);
    } else if (letter == '\n') {
      Append("\\n", out);
    } else if (letter == '\t') {
      Append("\\t", out);
    } else {
      Append("\\x", out);
      out.push_back(kDigits[byte >> 4]);
      out.push_back(kDigits[byte & 15]);
    }
  }
}

// The message and the fields: %* of the pattern.
class MessageFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    AppendEscaped({message.payload.data(), message.payload.size()}, out);
    const LogFields& fields = *CurrentLogFields();
    for (const auto& [name, value] :
         {std::pair{" session=", &fields.session}, std::pair{" trace=", &fields.trace}}) {
      if (value->empty()) continue;
      Append(name, out);
      AppendEscaped(*value, out);
    }
  }

  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<MessageFlag>();
  }
};

const char* LevelName(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return "debug";
    case spdlog::level::warn:
      return "warn";
    case spdlog::level::err:
    case spdlog::level::critical:
      return "error";
    default:
      return "info";
  }
}

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    nlohmann::ordered_json line;
    line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(message.time),
                                    absl::UTCTimeZone());
    line["level"] = LevelName(message.level);
    line["message"] = std::string(message.payload.data(), message.payload.size());
    const LogFields& fields = *CurrentLogFields();
    if (std::string drafter = LogDrafter(); !drafter.empty()) line["drafter"] = std::move(drafter);
    if (!fields.session.empty()) line["session"] = fields.session;
    if (!fields.trace.empty()) line["trace"] = fields.trace;
    Append(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), out);
    out.push_back('\n');
  }

  std::unique_ptr<formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

}  // namespace

std::unique_ptr<spdlog::formatter> TextLogFormatter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<MessageFlag>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %^%l%$ %*");
  return formatter;
}

std::unique_ptr<spdlog::formatter> JsonLogFormatter() { return std::make_unique<JsonFormatter>(); }

}  // namespace aerie
