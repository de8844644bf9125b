// Which settings of a head the net has the equations for. A head that asks for others is refused by
// name: run with the rest of its settings it would draft, badly, and nothing would say so.
#pragma once

#include "absl/status/status.h"
#include "server/checkpoint/checkpoint.h"

namespace aerie {

// FAILED_PRECONDITION that lists every setting of `checkpoint` which is read but not computed.
absl::Status CheckDoneHere(const Checkpoint& checkpoint);

}  // namespace aerie
