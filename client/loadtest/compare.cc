#include "client/loadtest/compare.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/loadtest/report_json_parts.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

struct Figure {
  const char* path;
  bool more_is_better;
  bool judged;
};

// Tails are told and not judged: of a short run they are a few rounds' luck.
constexpr Figure kRunFigures[] = {
    {"measured.rounds_per_second", true, true},
    {"measured.tokens_per_second", true, true},
    {"latency_seconds.round_from_intended.mean", false, true},
    {"latency_seconds.round_from_intended.p50", false, true},
    {"latency_seconds.round_from_intended.p99", false, true},
    {"latency_seconds.round_from_intended.p99_9", false, false},
    {"latency_seconds.round.p50", false, true},
    {"latency_seconds.round.p99", false, true},
    {"latency_seconds.prompt.p50", false, true},
    {"server_seconds.total.p50", false, true},
    {"server_seconds.total.p99", false, false},
    {"acceptance.mean_accept_length", true, true},
    {"verdicts.error_share", false, true},
    {"tester.cpu_seconds_per_round", false, false},
};
constexpr Figure kSweepFigures[] = {
    {"knee.level", true, false},
    {"knee.rounds_per_second", true, true},
    {"knee.tokens_per_second", true, true},
    {"knee.mean", false, true},
    {"knee.p99", false, true},
};

// Objects whose every field is told when it differs.
constexpr const char* kFacts[] = {"version", "revision", "host", "server", "options"};

Json::json_pointer Pointer(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return Json::json_pointer("/" + path);
}

absl::StatusOr<Json> Read(const std::string& text, const char* which) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool ours = json.is_object() && json.value("schema", "") == "aerie-load";
  const int version = ours ? json.value("schema_version", 0) : 0;
  if (version == kSchemaVersion && json.value("kind", "") != "comparison") return json;
  return absl::InvalidArgumentError(
      absl::StrCat(which, " is ",
                   ours ? absl::StrCat("a ", json.value("kind", ""), " of schema version ", version)
                        : "no report of aerie-load",
                   "; expected a run or a sweep of schema version ", kSchemaVersion,
                   "; make it with aerie-load --json of this version"));
}

void AddNotes(const Json& before, const Json& after, const std::string& path, Comparison* out) {
  if (before == after) return;
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : before.items()) {
      AddNotes(value, after.contains(key) ? after.at(key) : Json(), path + "." + key, out);
    }
    return;
  }
  out->notes.push_back(absl::StrCat(path, " was ", before.dump(), " and is ", after.dump()));
}

void AddFigure(const Json& before, const Json& after, const Figure& figure, double tolerance,
               Comparison* out) {
  const Json::json_pointer at = Pointer(figure.path);
  if (!before.contains(at) || !after.contains(at)) return;
  ComparedFigure compared;
  compared.name = figure.path;
  compared.judged = figure.judged;
  compared.before = before.at(at).get<double>();
  compared.after = after.at(at).get<double>();
  const double grown = compared.after - compared.before;
  // From nothing to something is infinitely more.
  compared.change = grown == 0             ? 0.0
                    : compared.before == 0 ? std::copysign(HUGE_VAL, grown)
                                           : grown / compared.before;
  const double gain = figure.more_is_better ? compared.change : -compared.change;
  compared.better = gain > 0;
  compared.worse = figure.judged && !(gain >= -tolerance);
  out->figures.push_back(std::move(compared));
}

}  // namespace

bool Comparison::worse() const {
  return std::any_of(figures.begin(), figures.end(),
                     [](const ComparedFigure& figure) { return figure.worse; });
}

absl::StatusOr<Comparison> Compare(const std::string& before, const std::string& after,
                                   double tolerance) {
  AERIE_ASSIGN_OR_RETURN(const Json first, Read(before, "the first file"));
  AERIE_ASSIGN_OR_RETURN(const Json second, Read(after, "the second file"));
  if (first.at("kind") != second.at("kind")) {
    return absl::InvalidArgumentError(absl::StrCat("the first file is a ", first.value("kind", ""),
                                                   ", the second a ", second.value("kind", ""),
                                                   "; expected two of a kind; compare those"));
  }
  Comparison out;
  for (const char* fact : kFacts) {
    AddNotes(first.value(fact, Json()), second.value(fact, Json()), fact, &out);
  }
  // A field of a damaged report may be of another type.
  try {
    if (first.at("kind") == "sweep") {
      for (const Figure& figure : kSweepFigures) AddFigure(first, second, figure, tolerance, &out);
    } else {
      for (const Figure& figure : kRunFigures) AddFigure(first, second, figure, tolerance, &out);
    }
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("a report is damaged (", error.what(),
                                                   "); expected what --json wrote; make it again"));
  }
  return out;
}

std::string ToTable(const Comparison& comparison) {
  std::string text;
  for (const std::string& note : comparison.notes) {
    absl::StrAppend(&text, "not the same     ", note, "\n");
  }
  absl::StrAppendFormat(&text, "%-44s %14s %14s %9s\n", "", "before", "after", "change");
  for (const ComparedFigure& f : comparison.figures) {
    absl::StrAppendFormat(&text, "%-44s %14.6g %14.6g %+8.1f%%%s\n", f.name, f.before, f.after,
                          100 * f.change,
                          f.worse         ? "  WORSE"
                          : f.change == 0 ? ""
                          : f.better      ? "  better"
                                          : "");
  }
  return text;
}

std::string ToJson(const Comparison& comparison, double tolerance) {
  Json figures = Json::array();
  for (const ComparedFigure& f : comparison.figures) {
    figures.push_back({{"name", f.name},
                       {"before", f.before},
                       {"after", f.after},
                       {"change", std::isfinite(f.change) ? Json(f.change) : Json()},
                       {"judged", f.judged},
                       {"worse", f.worse}});
  }
  return JsonText({{"schema", "aerie-load"},
                   {"schema_version", kSchemaVersion},
                   {"kind", "comparison"},
                   {"tolerance", tolerance},
                   {"worse", comparison.worse()},
                   {"not_the_same", comparison.notes},
                   {"figures", std::move(figures)}});
}

}  // namespace aerie::loadtest
