#include "server/recording/match_command.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "server/recording/match.h"
#include "server/recording/match_report.h"
#include "server/recording/recording.h"

namespace aerie {
namespace {

CommandOutput Failed(int exit_code, absl::string_view message) {
  return {exit_code, "", absl::StrCat("aerie-verify match: ", message, "\n")};
}

CommandOutput Match(const std::string& a_folder, const std::string& b_folder, bool as_json) {
  const absl::StatusOr<Recording> a = LoadRecording(a_folder);
  if (!a.ok()) return Failed(2, a.status().message());
  const absl::StatusOr<Recording> b = LoadRecording(b_folder);
  if (!b.ok()) return Failed(2, b.status().message());
  const absl::StatusOr<MatchResult> result = MatchRecordings(*a, *b);
  if (!result.ok()) return Failed(2, result.status().message());
  return {MatchExitCode(*a, *b, *result),
          as_json ? MatchAsJson(*a, *b, *result) : MatchAsText(*a, *b, *result), ""};
}

}  // namespace

CommandOutput RunMatch(const std::vector<std::string>& arguments) {
  CLI::App app(
      "aerie-verify match: which tensor of recording A is which of recording B, by content alone. "
      "Exit code 0: nothing contradicts a claim; 3: something does; 4: undecided; 2: a recording "
      "cannot be read; 1: the command line cannot be.",
      "aerie-verify match");
  std::string a_folder, b_folder;
  bool as_json = false;
  app.add_option("A", a_folder, "Folder of the recording to explain.")
      ->required()
      ->type_name("FOLDER");
  app.add_option("B", b_folder, "Folder of the recording to find its tensors in.")
      ->required()
      ->type_name("FOLDER");
  app.add_flag("--json", as_json, "Print one JSON object.");
  // CLI11 takes the arguments from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    return {0, app.help(), ""};
  } catch (const CLI::ParseError& error) {
    return Failed(1, absl::StrCat("the command line cannot be read: ", error.what(),
                                  "; expected two folders and only the flags that --help lists; "
                                  "correct or remove it"));
  }
  return Match(a_folder, b_folder, as_json);
}

}  // namespace aerie
