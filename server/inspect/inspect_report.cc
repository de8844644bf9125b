#include "server/inspect/inspect_report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "server/guard/guard_profile_json.h"

namespace aerie {
namespace {

using Json = nlohmann::ordered_json;

// Of what a draft step reads: not the embedding, of which it takes one row, and nothing in front of
// the first layer, which only rows with target states pass.
bool IsReadEachStep(const TensorKey& key) {
  return key.role != HeadTensor::kFc && key.role != HeadTensor::kFcInputNorm &&
         key.role != HeadTensor::kFcNorm;
}

bool IsMap(const TensorSpan& tensor) { return tensor.name == "d2t" || tensor.name == "t2d"; }

Json WiringAsJson(const InspectReport& report) {
  Json boundaries = Json::array();
  for (const Capture& capture : report.wiring.captures()) {
    if (capture.kind == Capture::Kind::kFinalNorm) {
      boundaries.push_back("final_norm");
    } else {
      boundaries.push_back(capture.boundary);
    }
  }
  return {{"boundaries", std::move(boundaries)},
          {"layer_ids", report.claim.ids},
          {"convention", report.claim.convention},
          {"certainty", std::string(WiringCertaintyName(report.claim.certainty))},
          {"guard_profile", report.guard.empty() ? Json() : Json(report.guard)}};
}

// What the guard's profile is, or an error that the server would have with it too.
void ReadGuard(const Checkpoint& checkpoint, InspectReport& report) {
  if (checkpoint.guard_profile.empty()) return;
  const Wiring& wiring = checkpoint.spec.wiring.value;
  // Without a target it may be unknown what the profile has to fit.
  const absl::StatusOr<GuardProfile> profile =
      wiring.size() == 0 ? GuardProfileFromJson(checkpoint.guard_profile)
                         : GuardProfileOf(checkpoint.guard_profile, wiring,
                                          checkpoint.spec.target_hidden_size.value);
  if (!profile.ok()) {
    report.errors.push_back(std::string(profile.status().message()));
    return;
  }
  report.guard =
      absl::StrCat("of ", profile->rows, " rows from ", profile->sequences, " sequences, with ",
                   profile->places[0].alternatives.size(), " other captures to compare with");
}

// A list under a heading; nothing when it is empty.
void AppendList(std::string& text, const char* heading, const std::vector<std::string>& list) {
  if (list.empty()) return;
  absl::StrAppend(&text, heading, "\n");
  for (size_t i = 0; i < list.size(); ++i) absl::StrAppend(&text, "  ", i + 1, ". ", list[i], "\n");
}

}  // namespace

InspectReport MakeReport(const Inspection& inspection) {
  const Checkpoint& checkpoint = inspection.checkpoint;
  InspectReport report;
  if (!inspection.unreadable.ok()) {
    report.errors.push_back(std::string(inspection.unreadable.message()));
  }
  const Complaints& complaints = inspection.complaints;
  report.errors.insert(report.errors.end(), complaints.list().begin(), complaints.list().end());
  report.warnings = complaints.warnings();
  // Of a head that is refused, the wiring that the profile must fit may be wrong itself.
  if (report.errors.empty()) ReadGuard(checkpoint, report);
  report.ok = report.errors.empty();
  report.version = checkpoint.version;
  report.tensors = inspection.tensors;
  for (TensorSpan& tensor : report.tensors) {
    if (!IsMap(tensor)) report.parameter_bytes += tensor.bytes.size();
  }
  if (!inspection.resolved) return report;
  report.settings = checkpoint.Settings();
  report.wiring = checkpoint.spec.wiring.value;
  report.claim = checkpoint.wiring_claim;
  if (checkpoint.tensors.count(HeadTensor::kOutput) == 0) return report;
  for (const auto& [key, tensor] : checkpoint.tensors) {
    if (IsReadEachStep(key)) report.step_parameters += tensor.elements();
  }
  return report;
}

double FloorSeconds(uint64_t parameters, int element_bytes, double gigabytes_per_second) {
  return static_cast<double>(parameters) * element_bytes / (gigabytes_per_second * 1e9);
}

std::string ReportAsJson(const InspectReport& report, double gigabytes_per_second) {
  Json settings = Json::object();
  for (const Setting& setting : report.settings) {
    settings[setting.name] = {{"value", setting.value}, {"source", setting.source}};
  }
  Json tensors = Json::array();
  for (const TensorSpan& tensor : report.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", std::string(TensorTypeName(tensor.type))},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes.size()}});
  }
  Json floors = Json::object();
  floors["gigabytes_per_second"] = gigabytes_per_second;
  floors["parameters_read"] = report.step_parameters;
  floors["bfloat16_ms"] = 1e3 * FloorSeconds(report.step_parameters, 2, gigabytes_per_second);
  floors["float32_ms"] = 1e3 * FloorSeconds(report.step_parameters, 4, gigabytes_per_second);
  const Json json = {{"ok", report.ok},
                     {"errors", report.errors},
                     {"warnings", report.warnings},
                     {"version", report.version},
                     {"settings", std::move(settings)},
                     {"wiring", WiringAsJson(report)},
                     {"parameter_bytes", report.parameter_bytes},
                     {"step_floor", std::move(floors)},
                     {"tensors", std::move(tensors)}};
  // Names in a file need not be UTF-8; they must not stop the report.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ReportAsText(const InspectReport& report, double gigabytes_per_second) {
  std::string text = report.ok ? "This head loads.\n" : "This head is refused.\n";
  AppendList(text, "\nErrors", report.errors);
  AppendList(text, "\nWarnings", report.warnings);
  if (!report.settings.empty()) absl::StrAppend(&text, "\nSettings\n");
  for (const Setting& setting : report.settings) {
    absl::StrAppendFormat(&text, "  %-26s %-24s %s\n", setting.name, setting.value, setting.source);
  }
  if (!report.settings.empty()) {
    absl::StrAppend(
        &text, "\nWiring\n  boundaries ",
        report.wiring.size() == 0 ? std::string("unknown") : report.wiring.ToString(),
        "\n  layer ids ", report.claim.ids.empty() ? "none" : absl::StrJoin(report.claim.ids, ", "),
        ", read as ", report.claim.convention, "\n  this is ",
        absl::StrReplaceAll(std::string(WiringCertaintyName(report.claim.certainty)), {{"-", " "}}),
        "\n  live guard's profile: ",
        report.guard.empty() ? std::string("none; aerie-verify --write-wiring makes one")
                             : report.guard,
        "\n");
  }
  if (!report.tensors.empty()) absl::StrAppend(&text, "\nTensors\n");
  for (const TensorSpan& tensor : report.tensors) {
    absl::StrAppendFormat(&text, "  %-48s %-24s %d bytes\n", tensor.name, tensor.Describe(),
                          tensor.bytes.size());
  }
  absl::StrAppendFormat(&text, "\nParameters: %d bytes as stored\n", report.parameter_bytes);
  if (report.step_parameters > 0) {
    absl::StrAppendFormat(
        &text,
        "A draft step reads %d numbers; at %g GB/s no step takes less than %.3f ms in bfloat16, "
        "%.3f ms in float32\n",
        report.step_parameters, gigabytes_per_second,
        1e3 * FloorSeconds(report.step_parameters, 2, gigabytes_per_second),
        1e3 * FloorSeconds(report.step_parameters, 4, gigabytes_per_second));
  }
  return text;
}

}  // namespace aerie
