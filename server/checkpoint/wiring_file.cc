#include "server/checkpoint/wiring_file.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "server/checkpoint/json_check.h"

namespace aerie {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 8;
constexpr char kRemedy[] = "measure it again with aerie-verify, or remove the file";

// What is wrong with the file; empty when nothing is.
std::string FaultOf(const Json& json, const std::string& digest, std::vector<Capture>& captures) {
  const auto version = json.find("version");
  if (version == json.end() || *version != 1) return "has no version 1";
  const auto verified = json.find("verified");
  if (verified == json.end() || *verified != true) return "does not say \"verified\": true";
  const auto stated = json.find("weights_digest");
  if (stated == json.end() || !stated->is_string()) return "has no weights_digest";
  if (stated->get<std::string>() != digest) {
    return absl::StrCat("is of weights ", Quoted(stated->get<std::string>()),
                        " and these have the digest \"", digest, "\"");
  }
  const auto listed = json.find("captures");
  if (listed == json.end() || !listed->is_array() || listed->empty()) return "lists no captures";
  for (const Json& entry : *listed) {
    if (!entry.is_object()) return "lists a capture that is no object";
    const std::string kind =
        entry.contains("kind") && entry["kind"].is_string() ? entry["kind"] : Json("");
    if (kind == "final_norm") {
      captures.push_back(Capture::FinalNorm());
      continue;
    }
    const auto boundary = entry.find("boundary");
    if (kind != "boundary" || boundary == entry.end() || !boundary->is_number_unsigned() ||
        boundary->get<uint64_t>() > uint64_t{std::numeric_limits<int32_t>::max()}) {
      return "lists a capture that is neither a boundary nor the final norm";
    }
    captures.push_back(Capture::Boundary(boundary->get<int32_t>()));
  }
  return "";
}

}  // namespace

std::optional<MeasuredWiring> ReadMeasuredWiring(absl::string_view text,
                                                 const std::string& weights_digest,
                                                 Complaints& complaints) {
  std::string fault;
  std::vector<Capture> captures;
  if (absl::Status json = CheckJsonObject(text, kMaxDepth); !json.ok()) {
    fault = absl::StrCat("cannot be read: ", json.message());
  } else {
    fault = FaultOf(Json::parse(text.begin(), text.end()), weights_digest, captures);
  }
  if (fault.empty()) return MeasuredWiring{std::move(captures), kWiringFile};
  complaints.Add(absl::StrCat(kWiringFile, " beside the head ", fault,
                              "; expected a verified wiring of these weights; ", kRemedy));
  return std::nullopt;
}

}  // namespace aerie
