#include "client/admin/admin_text.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/check.h"
#include "google/protobuf/util/json_util.h"

namespace aerie::admin {
namespace {

struct LevelName {
  v1::LogLevel level;
  const char* name;
};
constexpr LevelName kLevels[] = {{v1::LOG_LEVEL_DEBUG, "debug"},
                                 {v1::LOG_LEVEL_INFO, "info"},
                                 {v1::LOG_LEVEL_WARN, "warn"},
                                 {v1::LOG_LEVEL_ERROR, "error"},
                                 {v1::LOG_LEVEL_OFF, "off"}};

std::string ToText(const v1::Capture& capture) {
  if (capture.kind() == v1::CAPTURE_KIND_FINAL_NORM) return "final norm";
  return absl::StrCat("boundary ", capture.boundary());
}

const char* NameOf(v1::WiringState state) {
  switch (state) {
    case v1::WIRING_STATE_OK:
      return "ok";
    case v1::WIRING_STATE_SUSPECT:
      return "suspect";
    case v1::WIRING_STATE_WRONG:
      return "wrong";
    default:
      return "unknown";
  }
}

void AddSettings(const google::protobuf::RepeatedPtrField<v1::Setting>& settings,
                 std::string* out) {
  for (const v1::Setting& setting : settings) {
    absl::StrAppendFormat(out, "  %-26s %-24s %s\n", Printable(setting.name()),
                          Printable(setting.value()), Printable(setting.source()));
  }
}

void AddReport(const v1::WiringReport& report, std::string* out) {
  absl::StrAppend(out, NameOf(report.state()), ": client \"", Printable(report.client()),
                  "\", target \"", Printable(report.target()), "\"");
  if (report.has_since()) {
    absl::StrAppend(out, ", since ", TimeText(report.since()));
  }
  absl::StrAppend(out, "\n  ", Printable(report.verdict()), "\n");
  absl::StrAppend(out, "  ", report.rows(), " rows in ", report.rounds(), " rounds; ",
                  report.sampled_rows(), " rows looked at in ", report.votes(), " groups of ",
                  report.sessions(), " sessions, ", report.odd_votes(), " of them odd\n");
  int place = 0;
  for (const v1::PlaceReport& found : report.places()) {
    absl::StrAppendFormat(
        out, "  capture %d: declared %s, looks like %s, position %.2f, size %.2f\n", place++,
        ToText(found.declared()), ToText(found.looks_like()), found.position(), found.size());
  }
  if (report.has_drafting()) {
    const v1::DraftingReport& drafting = report.drafting();
    absl::StrAppendFormat(out, "  accept length %s, expected %.2f, over %u drafts%s\n",
                          drafting.has_accept_length()
                              ? absl::StrFormat("%.2f", drafting.accept_length())
                              : "not known",
                          drafting.expected_accept_length(), drafting.judged(),
                          drafting.below_expectation() ? ": below expectation" : "");
  }
}

// A line for each that is set.
void AppendClientLimits(const v1::Limits& limits, std::string* out) {
  const std::pair<const char*, uint64_t> all[] = {
      {"sessions", limits.max_sessions_per_client()},
      {"waiting calls", limits.max_queued_per_client()},
      {"rows a second", limits.max_rows_per_second_per_client()},
      {"rows at once after a pause", limits.row_burst_per_client()},
      {"bytes in unanswered requests", limits.max_bytes_in_flight_per_client()}};
  for (const auto& [what, most] : all) {
    if (most > 0) absl::StrAppend(out, "  of one client: ", most, " ", what, "\n");
  }
  for (const v1::TargetQuota& quota : limits.target_quotas()) {
    absl::StrAppend(out, "  of target ", Printable(quota.target()), ":");
    if (quota.sessions() > 0) absl::StrAppend(out, " ", quota.sessions(), " sessions");
    if (quota.rows_per_second() > 0) {
      absl::StrAppend(out, quota.sessions() > 0 ? "," : "", " ", quota.rows_per_second(),
                      " rows a second");
    }
    absl::StrAppend(out, "\n");
  }
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto written = google::protobuf::util::MessageToJsonString(message, &json, options);
  AERIE_CHECK(written.ok()) << written.ToString();
  return json + "\n";
}

std::string Printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char letter) {
        const auto byte = static_cast<unsigned char>(letter);
        return byte < 0x20 || byte == 0x7f;
      },
      '?');
  return text;
}

std::string TimeText(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(time.seconds()),
                          absl::UTCTimeZone());
}

std::string ToText(const v1::GetServerInfoResponse& info) {
  std::string out = absl::StrCat("aerie-server ", info.build().version(),
                                 info.build().revision().empty() ? "" : " revision ",
                                 info.build().revision(), ", protocol ", info.protocol_version(),
                                 ", LibTorch ", info.build().libtorch(), "\n");
  for (const v1::DrafterInfo& drafter : info.drafters()) {
    std::vector<std::string> captures;
    std::transform(drafter.captures().begin(), drafter.captures().end(),
                   std::back_inserter(captures), [](const auto& it) { return ToText(it); });
    absl::StrAppend(&out, "drafter ", Printable(drafter.name()), " version ", drafter.version(),
                    "\n  wants ", absl::StrJoin(captures, ", "), " of ",
                    drafter.target_num_layers(), " layers of width ", drafter.target_hidden_size(),
                    "\n  vocabulary ", drafter.vocab_size(), ", of which it drafts ",
                    drafter.draft_vocab_size(), "; ", drafter.weight_bytes(),
                    " bytes of weights\n");
    AddSettings(drafter.settings(), &out);
  }
  const v1::Limits& limits = info.limits();
  absl::StrAppend(&out, "limits: k ", limits.max_k(), ", ", limits.max_rows_per_call(),
                  " rows a call, ", limits.max_message_bytes(), " bytes a message, ",
                  limits.max_sessions(), " sessions of ", limits.max_context(), " rows, ",
                  limits.kv_memory_bytes(), " bytes of draft KV\n");
  AppendClientLimits(limits, &out);
  absl::StrAppend(&out, "settings:\n");
  AddSettings(info.settings(), &out);
  return out;
}

std::string ToText(const v1::GetWiringReportResponse& reports) {
  if (reports.reports().empty()) return "unknown: no session was opened yet\n";
  std::string out = absl::StrCat("worst: ", NameOf(reports.worst()), "\n");
  for (const v1::WiringReport& report : reports.reports()) AddReport(report, &out);
  return out;
}

std::string NameOf(v1::LogLevel level) {
  for (const LevelName& known : kLevels) {
    if (known.level == level) return known.name;
  }
  return "unknown";
}

absl::StatusOr<v1::LogLevel> LogLevelOf(const std::string& name) {
  for (const LevelName& known : kLevels) {
    if (known.name == name) return known.level;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "log level is \"", name, "\"; expected debug, info, warn, error or off; name one of these"));
}

}  // namespace aerie::admin
