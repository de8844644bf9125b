#include "server/recording/fingerprint_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/safetensors/json_check.h"

namespace aerie {
namespace {

using Json = nlohmann::json;

constexpr int32_t kMaxWidth = 1 << 20;

absl::Status NoFingerprint(absl::string_view seen, absl::string_view expected) {
  return absl::InvalidArgumentError(absl::StrCat("a fingerprint ", seen, "; expected ", expected,
                                                 "; make it again with aerie-verify"));
}

// False unless `json[key]` is an array of `count` finite numbers.
bool ReadFloats(const Json& json, const char* key, size_t count, std::vector<float>& numbers) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array() || found->size() != count) return false;
  for (const Json& number : *found) {
    if (!number.is_number()) return false;
    numbers.push_back(number.get<float>());
    if (!std::isfinite(numbers.back())) return false;
  }
  return true;
}

}  // namespace

std::string FingerprintToJson(const Fingerprint& fingerprint) {
  const Json json = {{"width", fingerprint.width},         {"rows", fingerprint.rows},
                     {"levels", Fingerprint::kLevels},     {"channels", fingerprint.channels},
                     {"quantiles", fingerprint.quantiles}, {"row_rms", fingerprint.row_rms}};
  return json.dump();
}

absl::StatusOr<Fingerprint> FingerprintFromJson(absl::string_view text) {
  if (absl::Status fault = CheckJsonObject(text, 2); !fault.ok()) {
    return NoFingerprint(absl::StrCat("cannot be read: ", fault.message()), "a JSON object");
  }
  const Json json = Json::parse(text.begin(), text.end());
  Fingerprint read;
  const Json width = json.value("width", Json());
  const Json rows = json.value("rows", Json());
  if (!width.is_number_unsigned() || width.get<uint64_t>() < 1 ||
      width.get<uint64_t>() > kMaxWidth || !rows.is_number_unsigned() || rows.get<uint64_t>() < 1 ||
      rows.get<uint64_t>() > uint64_t{INT64_MAX}) {
    return NoFingerprint("has no usable width and rows", "whole numbers above 0");
  }
  read.width = width.get<int32_t>();
  read.rows = rows.get<int64_t>();
  std::vector<float> levels;
  constexpr size_t kLevelCount = Fingerprint::kLevels.size();
  if (!ReadFloats(json, "levels", kLevelCount, levels) ||
      !std::equal(levels.begin(), levels.end(), Fingerprint::kLevels.begin())) {
    return NoFingerprint("is of other levels", "those of this program");
  }
  const auto channels = json.find("channels");
  if (channels == json.end() || !channels->is_array() || channels->empty()) {
    return NoFingerprint("lists no channels", "at least one");
  }
  for (const Json& channel : *channels) {
    const int64_t least = read.channels.empty() ? 0 : read.channels.back() + 1;
    if (!channel.is_number_unsigned() || channel.get<uint64_t>() < static_cast<uint64_t>(least) ||
        channel.get<uint64_t>() >= static_cast<uint64_t>(read.width)) {
      return NoFingerprint("lists a channel out of order or range",
                           absl::StrCat("ascending ones below ", read.width));
    }
    read.channels.push_back(channel.get<int32_t>());
  }
  if (!ReadFloats(json, "quantiles", kLevelCount * read.channels.size(), read.quantiles) ||
      !ReadFloats(json, "row_rms", kLevelCount, read.row_rms)) {
    return NoFingerprint("has other quantiles than its channels need",
                         "one finite number a level and channel");
  }
  return read;
}

}  // namespace aerie
