// The real loader of models: a checkpoint's folder in, a DraftModel out.
#pragma once

#include "server/serving/loaded_drafter.h"

namespace aerie {

// A ModelLoader. Any code: why the checkpoint, or the device, is not what it should be.
absl::StatusOr<LoadedModel> LoadModel(const DrafterOptions& source, const Options& options,
                                      const MemoryCheck& check);

}  // namespace aerie
