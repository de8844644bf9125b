// The commands about drafters, and their flags, on the command line of aerie-admin.
#pragma once

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "client/admin/admin_flags.h"

namespace aerie::admin {

struct DrafterWords {
  CLI::App* list;
  CLI::App* load;
  CLI::App* reload;
  CLI::App* unload;
};

// What they say is put into `options`, which lives until `app` has parsed.
DrafterWords AddDrafterCommands(CLI::App* app, AdminOptions* options);

// Of what they have put there: INVALID_ARGUMENT for a folder that is not absolute.
absl::Status CheckFolders(const AdminOptions& options);

}  // namespace aerie::admin
