// Listeners and servers as flags name them: host:port or unix:PATH.
#pragma once

#include <string>

namespace aerie {

// Whether `address` is unix:PATH.
bool IsUnixAddress(const std::string& address);
// Whether processes of other hosts may be able to reach it: neither a Unix socket nor loopback. A
// name that is not "localhost" counts as public, whatever it resolves to.
bool IsPublicAddress(const std::string& address);

}  // namespace aerie
