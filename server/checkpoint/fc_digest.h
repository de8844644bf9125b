// What tells the fc of two checkpoints apart, for workers that apply it themselves.
#pragma once

#include <string>

#include "server/checkpoint/checkpoint.h"

namespace aerie {

// DrafterInfo.fc_digest of the contract. Empty when fused rows cannot be taken: without an fc, with
// norms in front of it, and of an fc in fp8, which means nothing without its scales.
std::string FcDigest(const Checkpoint& checkpoint);

}  // namespace aerie
