// What was typed, to options; contradictions between flags.
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "aerie_version.h"
#include "client/loadtest/load_flags.h"
#include "common/status_macros.h"

namespace aerie::loadtest {
namespace {

absl::StatusOr<TreeShape> ParseTree(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  TreeShape tree;
  if (parts.size() == 3 && absl::SimpleAtoi(parts[0], &tree.depth) &&
      absl::SimpleAtoi(parts[1], &tree.top_k) && absl::SimpleAtoi(parts[2], &tree.total_tokens)) {
    return tree;
  }
  return BadFlag("--tree", absl::StrCat("'", text, "'"),
                 "expected depth, top-k and total tokens; write for example 5,4,16");
}

absl::Status OfFlag(absl::string_view flag, const absl::Status& status) {
  return status.ok() ? status
                     : absl::InvalidArgumentError(absl::StrCat(flag, ": ", status.message()));
}

}  // namespace

absl::Status ParseTime(absl::string_view flag, const std::string& text, absl::Duration* out) {
  if (absl::ParseDuration(text, out)) return absl::OkStatus();
  return BadFlag(flag, absl::StrCat("'", text, "'"),
                 "expected a number with a unit; write for example 500ms, 30s or 2m");
}

absl::Status LoadFlags::ReadTexts() {
  const auto time = [this](const char* flag, absl::Duration* out) {
    return ParseTime(flag, texts_[flag], out);
  };
  AERIE_RETURN_IF_ERROR(time("--deadline", &o_.deadline));
  AERIE_RETURN_IF_ERROR(time("--warmup", &o_.warmup));
  AERIE_RETURN_IF_ERROR(time("--think-time", &o_.think_time));
  AERIE_RETURN_IF_ERROR(time("--verify-time", &o_.verify_time));
  AERIE_RETURN_IF_ERROR(time("--fault-deadline-time", &o_.fault_deadline));
  if (app_.count("--duration") > 0) {
    AERIE_RETURN_IF_ERROR(time("--duration", &o_.duration.emplace()));
  }
  if (app_.count("--goodput") > 0) AERIE_RETURN_IF_ERROR(time("--goodput", &o_.goodput.emplace()));
  auto sessions = LoadProfile::Parse(texts_["--sessions"]);
  AERIE_RETURN_IF_ERROR(OfFlag("--sessions", sessions.status()));
  o_.sessions = *std::move(sessions);
  if (app_.count("--rate") > 0) {
    auto rate = LoadProfile::Parse(texts_["--rate"]);
    AERIE_RETURN_IF_ERROR(OfFlag("--rate", rate.status()));
    o_.rate = *std::move(rate);
  }
  auto accept = AcceptProcess::Parse(texts_["--accept"]);
  AERIE_RETURN_IF_ERROR(OfFlag("--accept", accept.status()));
  o_.accept = *std::move(accept);
  if (app_.count("--tree") > 0) {
    AERIE_ASSIGN_OR_RETURN(o_.tree, ParseTree(texts_["--tree"]));
  }
  o_.transport = texts_["--transport"] == "stream" ? TransportKind::kStream : TransportKind::kUnary;
  static const std::map<std::string, Arrivals> kArrivals = {{"constant", Arrivals::kConstant},
                                                            {"poisson", Arrivals::kPoisson},
                                                            {"gamma", Arrivals::kGamma}};
  o_.arrivals = kArrivals.at(texts_["--arrivals"]);
  static const std::map<std::string, DType> kTypes = {
      {"bfloat16", DType::kBF16}, {"float16", DType::kF16}, {"float32", DType::kF32}};
  o_.fp8 = texts_["--dtype"] == "float8_e4m3fn";
  if (app_.count("--dtype") > 0 && !o_.fp8) o_.dtype = kTypes.at(texts_["--dtype"]);
  for (const std::string& text : slo_) {
    AERIE_ASSIGN_OR_RETURN(o_.slo.emplace_back(), ParseSlo(text));
  }
  return absl::OkStatus();
}

absl::Status LoadFlags::CheckContradictions(bool rate_elsewhere) const {
  const auto given = [this](const char* flag) { return app_.count(flag) > 0; };
  if (o_.tree.has_value() && given("--k")) {
    return BadFlag("--k", absl::StrCat(o_.k),
                   "it contradicts --tree, whose last number says how many; leave it out");
  }
  // Flags that mean nothing without another one.
  const std::tuple<const char*, bool, const char*> needs[] = {
      {"--verify-time", o_.adaptive_k, "--adaptive-k"},
      {"--arrivals", o_.rate.has_value() || rate_elsewhere, "--rate"},
      {"--burstiness", o_.arrivals == Arrivals::kGamma, "--arrivals gamma"},
      {"--metrics-token-file", !o_.metrics.empty(), "--metrics"},
      {"--fault-deadline-time", o_.faults.deadline > 0, "--fault-deadline"}};
  for (const auto& [flag, there, other] : needs) {
    if (!given(flag) || there) continue;
    return BadFlag(flag, "given",
                   absl::StrCat("only ", other,
                                " asks for it; give both or "
                                "neither"));
  }
  for (const char* flag : {"--prompt-rows", "--accept", "--dtype", "--fused"}) {
    if (o_.recording.empty() || !given(flag)) continue;
    return BadFlag(flag, "given", "it contradicts --recording, which has its own; leave it out");
  }
  return absl::OkStatus();
}

absl::Status LoadFlags::Read(LoadOptions* options, bool rate_elsewhere) {
  AERIE_RETURN_IF_ERROR(ReadTexts());
  AERIE_RETURN_IF_ERROR(CheckContradictions(rate_elsewhere));
  *options = o_;
  return absl::OkStatus();
}

Ending ParseInto(CLI::App& app, int argc, const char* const* argv,
                 const std::function<absl::Status()>& read) {
  app.set_version_flag(
      "--version", absl::StrCat("aerie-load ", kVersion, *kRevision == '\0' ? "" : " ", kRevision));
  Ending ending;
  absl::Status status;
  try {
    app.parse(argc, argv);
    status = read();
  } catch (const CLI::CallForHelp&) {
    return {0, app.help()};
  } catch (const CLI::CallForVersion&) {
    return {0, absl::StrCat(app.version(), "\n")};
  } catch (const CLI::ParseError& error) {
    status = absl::InvalidArgumentError(absl::StrCat(error.what(), "; run ", app.get_name(),
                                                     " --help for all flags and their values"));
  }
  if (!status.ok()) ending = {2, absl::StrCat(app.get_name(), ": ", status.message(), "\n")};
  return ending;
}

}  // namespace aerie::loadtest
