#include "server/checkpoint/wiring_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/safetensors/json_check.h"

namespace aerie {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 8;
constexpr char kRemedy[] = "measure it again with aerie-verify, or remove the file";

// Reads fields of one file; the first fault is kept.
class Reader {
 public:
  explicit Reader(const std::string& digest) : digest_(digest) {}

  // What is wrong with the file; empty when nothing is.
  const std::string& fault() const { return fault_; }

  void Read(const Json& json, WiringMeasurement& out) {
    ReadHeading(json, out);
    ReadCaptures(json, out);
    out.convention = Text(json, "convention");
    out.verdict = Text(json, "verdict");
    out.tokens_digest = Text(json, "tokens_digest");
    if (const auto expected = json.find("expected"); expected != json.end()) {
      ReadExpected(*expected, out.expected.emplace());
    }
    ReadFingerprints(json, out);
    if (const auto guard = json.find("guard"); guard != json.end()) {
      if (!guard->is_object()) return Fault("has a \"guard\" that is no object");
      out.guard = guard->dump();
    }
  }

 private:
  void Fault(std::string fault) {
    if (fault_.empty()) fault_ = std::move(fault);
  }

  void ReadHeading(const Json& json, WiringMeasurement& out) {
    const auto version = json.find("version");
    if (version == json.end() || *version != 1) Fault("has no version 1");
    const auto verified = json.find("verified");
    if (verified == json.end() || *verified != true) Fault("does not say \"verified\": true");
    const auto stated = json.find("weights_digest");
    if (stated == json.end() || !stated->is_string()) return Fault("has no weights_digest");
    out.weights_digest = stated->get<std::string>();
    if (out.weights_digest != digest_) {
      Fault(absl::StrCat("is of weights ", Quoted(out.weights_digest),
                         " and these have the digest \"", digest_, "\""));
    }
  }

  void ReadCaptures(const Json& json, WiringMeasurement& out) {
    const auto listed = json.find("captures");
    if (listed == json.end() || !listed->is_array() || listed->empty()) {
      return Fault("lists no captures");
    }
    for (const Json& entry : *listed) {
      if (!entry.is_object()) return Fault("lists a capture that is no object");
      const std::string kind =
          entry.contains("kind") && entry["kind"].is_string() ? entry["kind"] : Json("");
      if (kind == "final_norm") {
        out.captures.push_back(Capture::FinalNorm());
        continue;
      }
      const auto boundary = entry.find("boundary");
      if (kind != "boundary" || boundary == entry.end() || !boundary->is_number_unsigned() ||
          boundary->get<uint64_t>() > uint64_t{std::numeric_limits<int32_t>::max()}) {
        return Fault("lists a capture that is neither a boundary nor the final norm");
      }
      out.captures.push_back(Capture::Boundary(boundary->get<int32_t>()));
    }
  }

  // Empty when it is missing.
  std::string Text(const Json& json, const char* key) {
    const auto value = json.find(key);
    if (value == json.end()) return "";
    if (value->is_string()) return value->get<std::string>();
    Fault(absl::StrCat("has a ", key, " that is no text"));
    return "";
  }

  double Number(const Json& json, const char* key, double low, double high) {
    const auto value = json.find(key);
    if (value != json.end() && value->is_number()) {
      const double number = value->get<double>();
      if (number >= low && number <= high) return number;
    }
    Fault(absl::StrCat("expects a ", key, " that is no number in ", low, "..", high));
    return 0.0;
  }

  std::vector<double> Shares(const Json& json, const char* key) {
    std::vector<double> shares;
    const auto list = json.find(key);
    if (list != json.end() && list->is_array()) {
      for (const Json& value : *list) {
        if (!value.is_number() || !(value >= 0.0 && value <= 1.0)) break;
        shares.push_back(value.get<double>());
      }
      if (!shares.empty() && shares.size() == list->size()) return shares;
    }
    Fault(absl::StrCat("expects an ", key, " that is no list of numbers in 0..1"));
    return {};
  }

  void ReadExpected(const Json& json, WiringExpectation& out) {
    if (!json.is_object()) return Fault("has an \"expected\" that is no object");
    out.rows = static_cast<int64_t>(Number(json, "rows", 1, 1e15));
    out.sequences = static_cast<int32_t>(Number(json, "sequences", 1, 1e9));
    out.mean_log_likelihood = Number(json, "mean_log_likelihood", -1e6, 0);
    out.accuracy = Shares(json, "accuracy");
    out.acceptance = Shares(json, "acceptance");
    if (out.accuracy.size() != out.acceptance.size()) {
      Fault("expects accuracy and acceptance at different depths");
    }
    out.accept_length = Number(json, "accept_length", 1, 1e6);
  }

  void ReadFingerprints(const Json& json, WiringMeasurement& out) {
    const auto listed = json.find("fingerprints");
    if (listed == json.end()) return;
    if (!listed->is_array() || listed->size() != out.captures.size()) {
      return Fault("has no fingerprint for each capture");
    }
    for (const Json& fingerprint : *listed) out.fingerprints.push_back(fingerprint.dump());
  }

  const std::string& digest_;
  std::string fault_;
};

absl::Status CannotWrite(const std::string& path) {
  const int error = errno;
  const std::string message =
      absl::StrCat(path, " cannot be written: ", std::strerror(error),
                   "; expected a folder that may be written to; copy the head to one, or allow it");
  return error == EACCES || error == EROFS ? absl::PermissionDeniedError(message)
                                           : absl::InternalError(message);
}

// All of `text` to a new file, down to the disk.
bool WriteWhole(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return false;
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(file, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    written += static_cast<size_t>(count);
  }
  const bool whole = written == text.size() && fsync(file) == 0;
  return close(file) == 0 && whole;
}

}  // namespace

std::optional<WiringMeasurement> ReadWiringMeasurement(absl::string_view text,
                                                       const std::string& weights_digest,
                                                       Complaints& complaints) {
  std::string fault;
  WiringMeasurement measurement;
  if (absl::Status json = CheckJsonObject(text, kMaxDepth); !json.ok()) {
    fault = absl::StrCat("cannot be read: ", json.message());
  } else {
    Reader reader(weights_digest);
    reader.Read(Json::parse(text.begin(), text.end()), measurement);
    fault = reader.fault();
  }
  if (fault.empty()) return measurement;
  complaints.Add(absl::StrCat(kWiringFile, " beside the head ", fault,
                              "; expected a verified wiring of these weights; ", kRemedy));
  return std::nullopt;
}

std::optional<MeasuredWiring> ReadMeasuredWiring(absl::string_view text,
                                                 const std::string& weights_digest,
                                                 Complaints& complaints) {
  const auto measurement = ReadWiringMeasurement(text, weights_digest, complaints);
  if (!measurement.has_value()) return std::nullopt;
  return MeasuredWiringOf(*measurement);
}

MeasuredWiring MeasuredWiringOf(const WiringMeasurement& measurement) {
  return {measurement.captures, kWiringFile};
}

std::string WiringMeasurementAsJson(const WiringMeasurement& measurement) {
  Json captures = Json::array();
  for (const Capture& capture : measurement.captures) {
    if (capture.kind == Capture::Kind::kFinalNorm) {
      captures.push_back({{"kind", "final_norm"}});
    } else {
      captures.push_back({{"kind", "boundary"}, {"boundary", capture.boundary}});
    }
  }
  Json json = {{"version", 1},
               {"verified", true},
               {"weights_digest", measurement.weights_digest},
               {"captures", std::move(captures)},
               {"convention", measurement.convention},
               {"verdict", measurement.verdict}};
  if (measurement.expected.has_value()) {
    const WiringExpectation& expected = *measurement.expected;
    json["expected"] = {{"rows", expected.rows},
                        {"sequences", expected.sequences},
                        {"mean_log_likelihood", expected.mean_log_likelihood},
                        {"accuracy", expected.accuracy},
                        {"acceptance", expected.acceptance},
                        {"accept_length", expected.accept_length}};
  }
  json["tokens_digest"] = measurement.tokens_digest;
  if (!measurement.fingerprints.empty()) {
    Json fingerprints = Json::array();
    for (const std::string& text : measurement.fingerprints) {
      fingerprints.push_back(Json::parse(text));
    }
    json["fingerprints"] = std::move(fingerprints);
  }
  std::string text = json.dump(1);
  // In one line: a line for each of its thousands of numbers would help nobody.
  if (!measurement.guard.empty()) {
    text.resize(text.rfind("\n}"));
    absl::StrAppend(&text, ",\n \"guard\": ", measurement.guard, "\n}");
  }
  return text + "\n";
}

absl::Status WriteWiringFile(const std::string& folder, const WiringMeasurement& measurement) {
  const std::string path = std::filesystem::path(folder) / kWiringFile;
  // Of this process alone, so that two that write at once do not share it.
  const std::string partial = absl::StrCat(path, ".", getpid());
  if (WriteWhole(partial, WiringMeasurementAsJson(measurement)) &&
      std::rename(partial.c_str(), path.c_str()) == 0) {
    return absl::OkStatus();
  }
  const absl::Status status = CannotWrite(path);
  unlink(partial.c_str());
  return status;
}

}  // namespace aerie
