#include "server/inspect/checkpoint_flags.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "aerie_version.h"

namespace aerie {
namespace {

void AddSwitch(CLI::App& app, const char* name, std::optional<bool>& value, const char* what) {
  app.add_option_function<std::string>(
         name, [&value](const std::string& text) { value = text == "on"; }, what)
      ->check(CLI::IsMember({"on", "off"}));
}

}  // namespace

void AddCheckpointFlags(CLI::App& app, CheckpointOptions& options) {
  HeadConfigOptions& head = options.head;
  app.add_option("--embedding-key", options.embedding_key,
                 "Name of the target's tensor that is its token embedding.")
      ->type_name("NAME");
  app.add_option_function<std::string>(
         "--layer-id-convention",
         [&head](const std::string& text) {
           head.layer_ids = text == "input-of-layer" ? LayerIdConvention::kInputOfLayer
                                                     : LayerIdConvention::kOutputOfLayer;
         },
         "input-of-layer or output-of-layer: how layer ids in config.json are meant.")
      ->check(CLI::IsMember({"input-of-layer", "output-of-layer"}));
  AddSwitch(app, "--norm-before-residual", head.norm_before_residual,
            "on or off: whether the residual is the normed hidden state; beats config.json.");
  AddSwitch(app, "--norm-output", head.norm_output,
            "on or off: whether the normed output is fed back; beats config.json.");
  app.add_option("--rope-theta", head.rope_theta, "Base of the rotation; beats config.json.")
      ->type_name("BASE");
  app.add_option("--ignore-config-key", head.ignored_config_keys,
                 "A key of config.json to be taken as absent, a.b for one inside an object; may be "
                 "given several times.")
      ->type_name("KEY")
      ->allow_extra_args(false);
}

void AddVersionFlag(CLI::App& app) {
  app.set_version_flag(
      "--version",
      absl::StrCat(app.get_name(), " ", kVersion, kRevision[0] == '\0' ? "" : " revision ",
                   kRevision, " (", kCompiler, ")\n"),
      "Print the version and leave.");
}

}  // namespace aerie
