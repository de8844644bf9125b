#include "server/inspect/inspect_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "server/inspect/checkpoint_flags.h"

namespace aerie {

absl::StatusOr<InspectOptions> ParseInspectFlags(const std::vector<std::string>& arguments) {
  CLI::App app(
      "aerie-inspect: says what an EAGLE-3 head is, where each setting comes from, and everything "
      "for which it would be refused. Exit code 0: the head loads; 2: it is refused; 1: the "
      "command line cannot be read.",
      "aerie-inspect");
  InspectOptions options;
  app.add_option("drafter", options.drafter, "Folder of the head: config.json, model.safetensors.")
      ->required()
      ->type_name("FOLDER");
  app.add_option("--target", options.target,
                 "Folder of the target: config.json and what the head borrows. Without it, what "
                 "hangs on the target is left open.")
      ->type_name("FOLDER");
  app.add_flag("--json", options.json, "Print one JSON object.");
  app.add_option("--bandwidth", options.gigabytes_per_second,
                 "GB/s at which weights are read, above 0: for the floor of a draft step.")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("GB/s");
  AddCheckpointFlags(app, options.checkpoint);
  AddVersionFlag(app);

  // CLI11 takes the arguments from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    options.print = app.help();
    return options;
  } catch (const CLI::CallForVersion& version) {
    options.print = version.what();
    return options;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the command line cannot be read: ", error.what(),
        "; expected a folder and only the flags that --help lists; correct or remove it"));
  }
  return options;
}

}  // namespace aerie
