#include "client/admin/drafter_flags.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace aerie::admin {
namespace {

// The server's flags of these names. None has a default: without it the checkpoint's own word
// counts, and for a reload that of the load before.
void AddSourceFlags(CLI::App* command, v1::DrafterSource* source) {
  command
      ->add_option("--layer-id-convention", *source->mutable_layer_id_convention(),
                   "input-of-layer or output-of-layer.")
      ->type_name("WHICH");
  command
      ->add_option("--embedding-key", *source->mutable_embedding_key(),
                   "The target's tensor that is its token embedding.")
      ->type_name("TENSOR");
  command
      ->add_option_function<bool>(
          "--norm-before-residual",
          [source](const bool& value) { source->set_norm_before_residual(value); },
          "Beats what the checkpoint says.")
      ->type_name("true|false");
  command
      ->add_option_function<bool>(
          "--norm-output", [source](const bool& value) { source->set_norm_output(value); },
          "Beats what the checkpoint says.")
      ->type_name("true|false");
  command
      ->add_option_function<double>(
          "--rope-theta", [source](const double& value) { source->set_rope_theta(value); },
          "Beats what the checkpoint says; above 1.")
      ->type_name("BASE");
  command
      ->add_option_function<std::vector<std::string>>(
          "--ignore-config-key",
          [source](const std::vector<std::string>& keys) {
            source->clear_ignored_config_keys();
            for (const std::string& key : keys) source->add_ignored_config_keys(key);
          },
          "A key of config.json to be taken as absent; repeatable.")
      ->expected(1)
      ->take_all()
      ->type_name("KEY");
}

}  // namespace

DrafterWords AddDrafterCommands(CLI::App* app, AdminOptions* options) {
  v1::DrafterSource* const source = &options->source;
  DrafterWords words{};
  words.list = app->add_subcommand(
      "drafters", "Which drafters are loaded: version, state, open sessions, folder.");
  words.load = app->add_subcommand("load", "Loads one more drafter; comes back when it serves.");
  words.load->add_option("name", options->name, "What workers are to call it.")
      ->type_name("NAME")
      ->required();
  words.load
      ->add_option("folder", *source->mutable_folder(), "The head's folder, as the server sees it.")
      ->type_name("FOLDER")
      ->required();
  words.load
      ->add_option("--target", *source->mutable_target(),
                   "The target's folder, as the server sees it.")
      ->type_name("DIR")
      ->required();
  AddSourceFlags(words.load, source);

  words.reload = app->add_subcommand(
      "reload",
      "Loads a drafter anew beside the one that serves, and gives it the new sessions. Flags that "
      "are not given stay as they were.");
  words.reload->add_option("name", options->name, "Which; may be left out when there is one.")
      ->type_name("NAME");
  words.reload
      ->add_option("--folder", *source->mutable_folder(), "Another folder, as the server sees it.")
      ->type_name("DIR");
  words.reload->add_option("--target", *source->mutable_target(), "Another target's folder.")
      ->type_name("DIR");
  AddSourceFlags(words.reload, source);

  words.unload = app->add_subcommand(
      "unload", "Gives a drafter no new sessions; it is freed when its last one has ended.");
  words.unload->add_option("name", options->name, "Which.")->type_name("NAME")->required();
  return words;
}

absl::Status CheckFolders(const AdminOptions& options) {
  for (const auto& [flag, folder] : {std::pair{"folder", options.source.folder()},
                                     std::pair{"target", options.source.target()}}) {
    if (folder.empty() || folder.front() == '/') continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the ", flag, " is \"", folder,
                     "\"; expected an absolute path, since the server reads it, from a working "
                     "directory of its own; begin it with /"));
  }
  return absl::OkStatus();
}

}  // namespace aerie::admin
