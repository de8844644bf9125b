// aerie-guard-profile: the live guard's profile of a recording whose labels are known to be right,
// without measuring the wiring first as aerie-verify does: for tests that need a profile in a
// moment.
//
// Prints the member "guard" of wiring.json. Exit codes: 0 done, 1 the command line or the recording
// cannot be used.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "common/status_macros.h"
#include "server/guard/guard_profile_builder.h"
#include "server/guard/guard_profile_json.h"
#include "server/recording/recording.h"

namespace aerie {
namespace {

Capture CaptureOf(const TensorClaim& claim) {
  return claim.kind == TensorClaim::Kind::kFinalNorm ? Capture::FinalNorm()
                                                     : Capture::Boundary(claim.boundary);
}

struct Flags {
  std::string recording;
  std::vector<int32_t> boundaries;
  size_t samples = 0;  // 0: all
  double accuracy = 0.0;
  double acceptance = 0.0;
};

absl::StatusOr<std::string> Make(const Flags& flags) {
  AERIE_ASSIGN_OR_RETURN(const Recording recording, LoadRecording(flags.recording));
  std::vector<Capture> declared, recorded;
  for (const int32_t boundary : flags.boundaries) declared.push_back(Capture::Boundary(boundary));
  std::vector<size_t> tensors;
  for (size_t i = 0; i < recording.tensors().size(); ++i) {
    if (!recording.tensors()[i].claim.has_value()) continue;
    tensors.push_back(i);
    recorded.push_back(CaptureOf(*recording.tensors()[i].claim));
  }
  std::vector<RecordedRows> sequences;
  for (size_t sample = 0; sample < recording.samples().size(); ++sample) {
    if (flags.samples > 0 && sample >= flags.samples) break;
    RecordedRows& rows = sequences.emplace_back();
    for (const size_t tensor : tensors) rows.push_back(recording.rows(sample, tensor));
  }
  AERIE_ASSIGN_OR_RETURN(const Wiring wiring,
                         Wiring::Create(std::move(declared), recording.target().num_layers));
  AERIE_ASSIGN_OR_RETURN(GuardProfile profile, BuildGuardProfile(wiring, recorded, sequences));
  profile.expectation = DraftingExpectation{
      .accuracy = flags.accuracy, .log_likelihood = -2.5, .acceptance = {flags.acceptance}};
  return GuardProfileToJson(profile);
}

int Main(int argc, char** argv) {
  CLI::App app("Prints the live guard's profile of a recording.", "aerie-guard-profile");
  Flags flags;
  app.add_option("--recording", flags.recording, "Its folder.")->required()->type_name("DIR");
  app.add_option("--boundaries", flags.boundaries, "The head's, in order.")
      ->required()
      ->delimiter(',');
  app.add_option("--samples", flags.samples, "Only the first so many; 0: all.");
  app.add_option("--accuracy", flags.accuracy, "Expected of depth 1, 0..1.");
  app.add_option("--acceptance", flags.acceptance, "Expected of depth 1, 0..1.");
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<std::string> profile = Make(flags);
  if (!profile.ok()) {
    std::fprintf(stderr, "aerie-guard-profile: %s\n",
                 std::string(profile.status().message()).c_str());
    return 1;
  }
  std::puts(profile->c_str());
  return 0;
}

}  // namespace
}  // namespace aerie

int main(int argc, char** argv) { return aerie::Main(argc, argv); }
