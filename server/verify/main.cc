// aerie-verify: says which recorded hidden states a head wants and what its files got wrong.
//
// Exit codes: 0 verified, 3 contradicted, 4 undecided, 5 equivalent, 2 the input is bad, 1 the
// command line cannot be read. `aerie-verify match A B` compares two recordings and has codes of
// its own.
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/model/eagle3_model.h"
#include "server/recording/match_command.h"
#include "server/recording/recording.h"
#include "server/verify/guard_record.h"
#include "server/verify/html_report.h"
#include "server/verify/load_captures.h"
#include "server/verify/progress_bar.h"
#include "server/verify/report_json.h"
#include "server/verify/report_table.h"
#include "server/verify/verify.h"
#include "server/verify/verify_flags.h"
#include "server/verify/wiring_record.h"

namespace aerie {
namespace {

absl::Status WriteText(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file.good()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path,
                   " cannot be written; expected a file in a folder that exists and may be "
                   "written to; name another"));
}

absl::StatusOr<VerifyInput> Prepare(const VerifyFlags& flags, const DeclaredHead& head,
                                    const Recording& recording) {
  AERIE_RETURN_IF_ERROR(CheckFitsHead(recording, head.checkpoint));
  VerifyInput input;
  input.captures = CapturesOf(recording);
  AERIE_ASSIGN_OR_RETURN(input.tables,
                         LoadTargetTables(flags.target, flags.checkpoint.embedding_key));
  AddTargetTensors(*input.tables, input.captures, input.limits);
  input.num_layers = head.checkpoint.target.num_layers;
  input.num_captures = head.checkpoint.spec.num_captures.value;
  input.readings = head.readings;
  for (Reading& reading : input.readings) FindCandidate(input.captures, reading);
  input.options = head.options;
  if (flags.what_if) {
    input.variants = SettingVariants(head.checkpoint, head.options, input.tables->rope_theta);
  }
  return input;
}

void Warn(const absl::Status& status) {
  std::fprintf(stderr, "aerie-verify: %s\n", std::string(status.message()).c_str());
}

// What cannot be written because of what was found is said, and is no error.
absl::Status WriteWiring(const std::string& folder, const VerifyResult& result,
                         const Recording& recording, const VerifyInput& input) {
  auto measurement = MeasurementOf(result, recording, input.captures, input.readings);
  if (!measurement.ok()) {
    Warn(measurement.status());
    return absl::OkStatus();
  }
  const auto guard = MakeGuardProfile(result, input.captures, input.readings);
  if (guard.ok()) {
    measurement->guard = *guard;
  } else {
    Warn(absl::Status(guard.status().code(),
                      absl::StrCat("wiring.json holds no profile for the live guard: ",
                                   guard.status().message())));
  }
  return WriteWiringFile(folder, *measurement);
}

absl::StatusOr<VerifyResult> Run(const VerifyFlags& flags) {
  AERIE_ASSIGN_OR_RETURN(const Recording recording, LoadRecording(flags.captures));
  AERIE_ASSIGN_OR_RETURN(const DeclaredHead head,
                         LoadDeclaredHead(flags.drafter, flags.target, flags.checkpoint));
  AERIE_ASSIGN_OR_RETURN(const VerifyInput input, Prepare(flags, head, recording));
  // float32: what is compared is the wiring, not the rounding of a CPU's products.
  const ModelOptions model_options{.dtype = ComputeDType::kFloat32, .threads = flags.threads};
  const auto load =
      [&](const CheckpointOptions& options) -> absl::StatusOr<std::unique_ptr<DraftModel>> {
    AERIE_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                           LoadCheckpoint(flags.drafter, flags.target, options));
    return LoadEagle3Model(checkpoint, model_options);
  };
  ProgressBar bar(stderr);
  AERIE_ASSIGN_OR_RETURN(VerifyResult result,
                         Verify(input, flags.options, load,
                                [&bar](const std::string& stage, int64_t done, int64_t total) {
                                  bar.Show(stage, done, total);
                                }));
  bar.Clear();
  result.drafter = flags.drafter;
  result.drafter_version = head.checkpoint.version;
  result.target = flags.target;
  result.recording = flags.captures;
  result.source = recording.source();
  result.dtype = DTypeName(recording.dtype());
  if (flags.json.has_value() && !flags.json->empty()) {
    AERIE_RETURN_IF_ERROR(WriteText(*flags.json, VerifyResultAsJson(result)));
  }
  if (!flags.html.empty()) {
    AERIE_RETURN_IF_ERROR(WriteText(flags.html, VerifyResultAsHtml(result)));
  }
  if (flags.write_wiring) {
    AERIE_RETURN_IF_ERROR(WriteWiring(flags.drafter, result, recording, input));
  }
  return result;
}

int Main(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "match") {
    const CommandOutput output =
        RunMatch(std::vector<std::string>(arguments.begin() + 1, arguments.end()));
    std::fputs(output.out.c_str(), stdout);
    std::fputs(output.err.c_str(), stderr);
    return output.exit_code;
  }
  const auto flags = ParseVerifyFlags(arguments);
  if (!flags.ok()) {
    std::fprintf(stderr, "aerie-verify: %s\n", std::string(flags.status().message()).c_str());
    return 1;
  }
  if (flags->print.has_value()) {
    std::fputs(flags->print->c_str(), stdout);
    return 0;
  }
  const auto result = Run(*flags);
  if (!result.ok()) {
    std::fprintf(stderr, "aerie-verify: %s\n", std::string(result.status().message()).c_str());
    return 2;
  }
  const bool json_to_stdout = flags->json.has_value() && flags->json->empty();
  std::fputs((json_to_stdout ? VerifyResultAsJson(*result) : VerifyResultAsTable(*result)).c_str(),
             stdout);
  return ExitCode(result->verdict);
}

}  // namespace
}  // namespace aerie

int main(int argc, char** argv) {
  return aerie::Main(std::vector<std::string>(argv + 1, argv + argc));
}
