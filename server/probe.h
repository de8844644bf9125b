// What `aerie-server --probe ADDRESS` does: a health check from a container's own image.
#pragma once

#include "server/config/flags.h"

namespace aerie {

// Says on standard output whether the server there serves. 0 it does, 1 it does not, 2 it cannot be
// asked, or the files that it is to be asked with cannot be used.
int Probe(const ProbeOptions& options);

}  // namespace aerie
