#include "server/config/flag_readers.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

absl::Status Unreadable(const std::string& flag, const std::string& text, const char* expected,
                        const char* example) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " is \"", text, "\"; expected ",
                                                 expected, "; give a value such as ", example));
}

}  // namespace

absl::StatusOr<int32_t> ReadInt(const std::string& flag, const std::string& text) {
  int32_t value = 0;
  if (absl::SimpleAtoi(text, &value)) return value;
  return Unreadable(flag, text, "a whole number below 2147483648", "16");
}

absl::StatusOr<int64_t> ReadBytes(const std::string& flag, const std::string& text) {
  absl::string_view number = text;
  int64_t unit = 1;
  for (const auto& [suffix, bytes] : {std::pair<absl::string_view, int64_t>{"KiB", 1 << 10},
                                      {"MiB", 1 << 20},
                                      {"GiB", 1 << 30}}) {
    if (absl::ConsumeSuffix(&number, suffix)) unit = bytes;
  }
  int64_t value = 0;
  if (absl::SimpleAtoi(number, &value) && value >= 0 &&
      value <= std::numeric_limits<int64_t>::max() / unit) {
    return value * unit;
  }
  return Unreadable(flag, text, "bytes, or KiB, MiB or GiB", "64MiB");
}

absl::StatusOr<absl::Duration> ReadDuration(const std::string& flag, const std::string& text) {
  absl::Duration value;
  if (absl::ParseDuration(text, &value)) return value;
  return Unreadable(flag, text, "a time with its unit", "30s, 10m or 1h30m");
}

absl::StatusOr<bool> ReadSwitch(const std::string& flag, const std::string& text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return Unreadable(flag, text, "on or off", "off");
}

absl::StatusOr<double> ReadNumber(const std::string& flag, const std::string& text) {
  double value = 0.0;
  if (absl::SimpleAtod(text, &value)) return value;
  return Unreadable(flag, text, "a number", "10000");
}

absl::StatusOr<LayerIdConvention> ReadConvention(const std::string& flag, const std::string& text) {
  if (text == "input-of-layer") return LayerIdConvention::kInputOfLayer;
  if (text == "output-of-layer") return LayerIdConvention::kOutputOfLayer;
  return Unreadable(flag, text, "input-of-layer (id i is boundary i) or output-of-layer (i + 1)",
                    "input-of-layer");
}

std::string ConventionName(LayerIdConvention convention) {
  return convention == LayerIdConvention::kInputOfLayer ? "input-of-layer" : "output-of-layer";
}

absl::StatusOr<GuardMode> ReadGuardMode(const std::string& flag, const std::string& text) {
  for (const GuardMode mode : {GuardMode::kOff, GuardMode::kAlert, GuardMode::kNotServing}) {
    if (GuardModeName(mode) == text) return mode;
  }
  return Unreadable(flag, text, "off, alert or not-serving", "alert");
}

absl::StatusOr<int32_t> ReadMode(const std::string& flag, const std::string& text) {
  const bool octal =
      !text.empty() && text.size() <= 4 && text.find_first_not_of("01234567") == std::string::npos;
  const int32_t mode = octal ? static_cast<int32_t>(std::stol(text, nullptr, 8)) : -1;
  if (mode >= 0 && mode <= 0777) return mode;
  return Unreadable(flag, text, "permission bits in octal, 0..0777", "0660");
}

absl::StatusOr<std::string> ReadText(const std::string&, const std::string& text) { return text; }

absl::StatusOr<std::map<std::string, int32_t>> ReadWeights(const std::string& flag,
                                                           const std::vector<std::string>& texts) {
  std::map<std::string, int32_t> weights;
  for (const std::string& text : texts) {
    // The last one: a name may hold the sign, a weight may not.
    const size_t sign = text.rfind('=');
    int32_t weight = 0;
    if (sign == std::string::npos || !absl::SimpleAtoi(text.substr(sign + 1), &weight)) {
      return Unreadable(flag, text, "a client's name, = and its weight", "batch=2");
    }
    const std::string name = text.substr(0, sign);
    if (!weights.emplace(name, weight).second) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, " names the client \"", name,
                                                     "\" twice; expected one weight a client; "
                                                     "remove all but one"));
    }
  }
  return weights;
}

absl::StatusOr<TargetQuotaMap> ReadTargetQuotas(const std::string& flag,
                                                const std::vector<std::string>& texts) {
  TargetQuotaMap quotas;
  for (const std::string& text : texts) {
    // The last sign: a name may hold one, and colons; numbers hold neither.
    const size_t sign = text.rfind('=');
    const std::string numbers = sign == std::string::npos ? "" : text.substr(sign + 1);
    const size_t colon = numbers.find(':');
    TargetQuota quota;
    if (!absl::SimpleAtoi(numbers.substr(0, colon), &quota.sessions) ||
        (colon != std::string::npos &&
         !absl::SimpleAtoi(numbers.substr(colon + 1), &quota.rows_per_second))) {
      return Unreadable(flag, text,
                        "a target's name, =, its sessions, and perhaps : and its rows "
                        "a second",
                        "llama-70b=64:20000");
    }
    const std::string name = text.substr(0, sign);
    if (!quotas.emplace(name, quota).second) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, " names the target \"", name,
                                                     "\" twice; expected one quota a target; "
                                                     "remove all but one"));
    }
  }
  return quotas;
}

}  // namespace aerie
