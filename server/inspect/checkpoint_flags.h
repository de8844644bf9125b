// The flags that change how a head is read; every program that reads one has them under these
// names.
#pragma once

#include "server/checkpoint/checkpoint.h"

namespace CLI {
class App;
}  // namespace CLI

namespace aerie {

// `options` must outlive the parsing.
void AddCheckpointFlags(CLI::App& app, CheckpointOptions& options);

// --version: parsing throws CLI::CallForVersion, whose text ends with a line break.
void AddVersionFlag(CLI::App& app);

}  // namespace aerie
