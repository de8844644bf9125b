#include "server/guard/guard_profile_json.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/safetensors/json_check.h"

namespace aerie {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr int kMaxDepth = 6;
constexpr int kDigits = 5;  // of a number: a profile is statistics

double Rounded(double value) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10.0, kDigits - 1 - std::floor(std::log10(std::abs(value))));
  return std::round(value * unit) / unit;
}

Json Numbers(const std::vector<float>& values) {
  Json json = Json::array();
  for (const float value : values) json.push_back(Rounded(value));
  return json;
}

Json CaptureToJson(const Capture& capture) {
  if (capture.kind == Capture::Kind::kFinalNorm) return {{"kind", "final_norm"}};
  return {{"kind", "boundary"}, {"boundary", capture.boundary}};
}

Json AlternativeToJson(const GuardAlternative& alternative) {
  float largest = 0.0f;
  for (const float weight : alternative.weights) largest = std::max(largest, std::abs(weight));
  const float unit = largest > 0.0f ? largest / std::numeric_limits<int16_t>::max() : 1.0f;
  std::string bytes;
  for (const float weight : alternative.weights) {
    const auto steps = static_cast<uint16_t>(static_cast<int16_t>(std::lround(weight / unit)));
    bytes.push_back(static_cast<char>(steps & 0xffu));
    bytes.push_back(static_cast<char>(steps >> 8));
  }
  return {{"capture", CaptureToJson(alternative.capture)},
          {"told_apart", alternative.told_apart},
          {"offset", alternative.offset},
          {"unit", unit},
          {"weights", absl::Base64Escape(bytes)}};
}

// Reads one object; the first fault sticks.
class Reader {
 public:
  const std::string& fault() const { return fault_; }

  const Json* Member(const Json& json, const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    if (!json.is_object() || found == json.end()) {
      Fail(key, "is missing");
      return nullptr;
    }
    return &*found;
  }

  double Number(const Json& json, const char* key) {
    const Json* found = Member(json, key);
    if (found == nullptr) return 0.0;
    if (!found->is_number()) return Fail(key, "is no number"), 0.0;
    return found->get<double>();
  }

  // 0..2^31-1.
  int32_t Count(const Json& json, const char* key) {
    const Json* found = Member(json, key);
    if (found == nullptr) return 0;
    if (!found->is_number_unsigned() ||
        found->get<uint64_t>() > uint64_t{std::numeric_limits<int32_t>::max()}) {
      return Fail(key, "is no count"), 0;
    }
    return found->get<int32_t>();
  }

  bool Flag(const Json& json, const char* key) {
    const Json* found = Member(json, key);
    if (found == nullptr) return false;
    if (!found->is_boolean()) return Fail(key, "is neither true nor false"), false;
    return found->get<bool>();
  }

  const Json& List(const Json& json, const char* key) {
    static const Json none = Json::array();
    const Json* found = Member(json, key);
    if (found == nullptr) return none;
    if (!found->is_array()) return Fail(key, "is no list"), none;
    return *found;
  }

  template <typename Number>
  std::vector<Number> Numbers(const Json& json, const char* key) {
    std::vector<Number> numbers;
    for (const Json& entry : List(json, key)) {
      const bool fits =
          std::is_integral_v<Number>
              ? entry.is_number_unsigned() &&
                    entry.get<uint64_t>() <= uint64_t{std::numeric_limits<int32_t>::max()}
              : entry.is_number();
      if (!fits) return Fail(key, "holds what is no such number"), numbers;
      numbers.push_back(entry.get<Number>());
    }
    return numbers;
  }

  Capture CaptureAt(const Json& json) {
    const Json* capture = Member(json, "capture");
    if (capture == nullptr) return {};
    const Json* kind = Member(*capture, "kind");
    if (kind == nullptr) return {};
    if (*kind == "final_norm") return Capture::FinalNorm();
    if (*kind != "boundary") return Fail("kind", "is neither boundary nor final_norm"), Capture();
    return Capture::Boundary(Count(*capture, "boundary"));
  }

  std::vector<float> Weights(const Json& json) {
    std::vector<float> weights;
    const Json* text = Member(json, "weights");
    const double unit = Number(json, "unit");
    std::string bytes;
    if (text == nullptr) return weights;
    if (!text->is_string() || !absl::Base64Unescape(text->get_ref<const std::string&>(), &bytes) ||
        bytes.size() % 2 != 0) {
      return Fail("weights", "is no base64 of whole int16 numbers"), weights;
    }
    for (size_t i = 0; i < bytes.size(); i += 2) {
      const auto low = static_cast<uint8_t>(bytes[i]), high = static_cast<uint8_t>(bytes[i + 1]);
      const auto steps = static_cast<int16_t>(static_cast<uint16_t>(low | (high << 8)));
      weights.push_back(static_cast<float>(unit * steps));
    }
    return weights;
  }

 private:
  void Fail(const char* key, const char* what) {
    if (fault_.empty()) fault_ = absl::StrCat("\"", key, "\" ", what);
  }
  std::string fault_;
};

GuardPlace PlaceFromJson(const Json& json, Reader& reader) {
  GuardPlace place{.capture = reader.CaptureAt(json),
                   .center = reader.Numbers<float>(json, "center"),
                   .scale = reader.Numbers<float>(json, "scale"),
                   .size = reader.Numbers<float>(json, "size"),
                   .rms = reader.Number(json, "rms"),
                   .landmarks = reader.Numbers<float>(json, "landmarks"),
                   .landmark_sizes = reader.Numbers<float>(json, "landmark_sizes")};
  for (const Json& entry : reader.List(json, "alternatives")) {
    place.alternatives.push_back({.capture = reader.CaptureAt(entry),
                                  .weights = reader.Weights(entry),
                                  .offset = static_cast<float>(reader.Number(entry, "offset")),
                                  .told_apart = reader.Flag(entry, "told_apart")});
  }
  return place;
}

absl::Status NoProfile(absl::string_view seen) {
  return absl::InvalidArgumentError(
      absl::StrCat("the guard's profile cannot be read: ", seen, "; expected version ", kVersion,
                   " as aerie-verify --write-wiring writes it; measure the wiring again"));
}

}  // namespace

std::string GuardProfileToJson(const GuardProfile& profile) {
  Json json = {{"version", kVersion},
               {"hidden_size", profile.hidden_size},
               {"rows", profile.rows},
               {"sequences", profile.sequences},
               {"channels", profile.channels}};
  if (profile.expectation.has_value()) {
    json["expectation"] = {{"accuracy", profile.expectation->accuracy},
                           {"log_likelihood", profile.expectation->log_likelihood},
                           {"acceptance", profile.expectation->acceptance}};
  }
  json["places"] = Json::array();
  for (const GuardPlace& place : profile.places) {
    Json entry = {{"capture", CaptureToJson(place.capture)},
                  {"center", Numbers(place.center)},
                  {"scale", Numbers(place.scale)},
                  {"size", Numbers(place.size)},
                  {"rms", Rounded(place.rms)},
                  {"landmarks", Numbers(place.landmarks)},
                  {"landmark_sizes", Numbers(place.landmark_sizes)},
                  {"alternatives", Json::array()}};
    for (const GuardAlternative& alternative : place.alternatives) {
      entry["alternatives"].push_back(AlternativeToJson(alternative));
    }
    json["places"].push_back(std::move(entry));
  }
  return json.dump();
}

absl::StatusOr<GuardProfile> GuardProfileFromJson(absl::string_view text) {
  if (absl::Status status = CheckJsonObject(text, kMaxDepth); !status.ok()) {
    return NoProfile(status.message());
  }
  const Json json = Json::parse(text.begin(), text.end());
  Reader reader;
  if (reader.Count(json, "version") != kVersion) return NoProfile("it has another version");
  GuardProfile profile{.hidden_size = reader.Count(json, "hidden_size"),
                       .channels = reader.Numbers<int32_t>(json, "channels"),
                       .rows = reader.Count(json, "rows"),
                       .sequences = reader.Count(json, "sequences")};
  for (const Json& entry : reader.List(json, "places")) {
    profile.places.push_back(PlaceFromJson(entry, reader));
  }
  if (const auto found = json.find("expectation"); found != json.end()) {
    profile.expectation =
        DraftingExpectation{.accuracy = reader.Number(*found, "accuracy"),
                            .log_likelihood = reader.Number(*found, "log_likelihood"),
                            .acceptance = reader.Numbers<double>(*found, "acceptance")};
  }
  if (!reader.fault().empty()) return NoProfile(reader.fault());
  if (absl::Status status = profile.Validate(); !status.ok()) return status;
  return profile;
}

absl::StatusOr<GuardProfile> GuardProfileOf(absl::string_view text, const Wiring& wiring,
                                            int32_t target_hidden_size) {
  absl::StatusOr<GuardProfile> profile = GuardProfileFromJson(text);
  if (!profile.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("wiring.json beside the head: ", profile.status().message()));
  }
  std::vector<Capture> captures;
  for (const GuardPlace& place : profile->places) captures.push_back(place.capture);
  if (captures == wiring.captures() && profile->hidden_size == target_hidden_size) return profile;
  std::vector<std::string> names;
  for (const Capture& capture : captures) names.push_back(capture.ToString());
  return absl::InvalidArgumentError(absl::StrCat(
      "the guard's profile in wiring.json beside the head is of ", absl::StrJoin(names, ", "),
      " with ", profile->hidden_size, " values each; expected the captures ", wiring.ToString(),
      " with ", target_hidden_size, "; measure the wiring again with aerie-verify --write-wiring"));
}

}  // namespace aerie
