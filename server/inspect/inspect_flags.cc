#include "server/inspect/inspect_flags.h"

#include <CLI/CLI.hpp>
#include <map>

#include "absl/strings/str_cat.h"

namespace aerie {

absl::StatusOr<InspectOptions> ParseInspectFlags(const std::vector<std::string>& arguments) {
  CLI::App app(
      "aerie-inspect: says what an EAGLE-3 head is, where each setting comes from, and everything "
      "for which it would be refused. Exit code 0: the head loads; 2: it is refused; 1: the "
      "command line cannot be read.",
      "aerie-inspect");
  InspectOptions options;
  HeadConfigOptions& head = options.checkpoint.head;
  const std::map<std::string, LayerIdConvention> conventions = {
      {"input-of-layer", LayerIdConvention::kInputOfLayer},
      {"output-of-layer", LayerIdConvention::kOutputOfLayer}};
  const std::map<std::string, bool> switches = {{"on", true}, {"off", false}};
  std::string convention, residual, output;

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
  app.add_option("--embedding-key", options.checkpoint.embedding_key,
                 "Name of the target's tensor that is its token embedding.")
      ->type_name("NAME");
  app.add_option("--layer-id-convention", convention,
                 "input-of-layer or output-of-layer: how layer ids in config.json are meant.")
      ->check(CLI::IsMember({"input-of-layer", "output-of-layer"}));
  app.add_option("--norm-before-residual", residual,
                 "on or off: whether the residual is the normed hidden state; beats config.json.")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--norm-output", output,
                 "on or off: whether the normed output is fed back; beats config.json.")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--rope-theta", head.rope_theta, "Base of the rotation; beats config.json.")
      ->type_name("BASE");
  app.add_option("--ignore-config-key", head.ignored_config_keys,
                 "A key of config.json to be taken as absent, a.b for one inside an object; may be "
                 "given several times.")
      ->type_name("KEY")
      ->allow_extra_args(false);

  // CLI11 takes the arguments from the back.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    options.print = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the command line cannot be read: ", error.what(),
        "; expected a folder and only the flags that --help lists; correct or remove it"));
  }
  if (!convention.empty()) head.layer_ids = conventions.at(convention);
  if (!residual.empty()) head.norm_before_residual = switches.at(residual);
  if (!output.empty()) head.norm_output = switches.at(output);
  return options;
}

}  // namespace aerie
