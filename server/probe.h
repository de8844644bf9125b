// What `aerie-server --probe ADDRESS` does: a health check from a container's own image.
#pragma once

#include <string>

namespace aerie {

// Says on standard output whether the server there serves. 0 it does, 1 it does not, 2 it cannot be
// asked.
int Probe(const std::string& address);

}  // namespace aerie
