#include "common/address.h"

#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace aerie {
namespace {

// Four numbers of at most 255, the first 127: "127.evil.example" is a name like any other.
bool IsLoopbackV4(const std::string& host) {
  const std::vector<std::string> parts = absl::StrSplit(host, '.');
  if (parts.size() != 4 || parts.front() != "127") return false;
  for (const std::string& part : parts) {
    uint32_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number > 255) return false;
  }
  return true;
}

}  // namespace

bool IsUnixAddress(const std::string& address) { return absl::StartsWith(address, "unix:"); }

bool IsPublicAddress(const std::string& address) {
  if (IsUnixAddress(address)) return false;
  const std::string host = address.substr(0, address.rfind(':'));
  return host != "localhost" && host != "[::1]" && !IsLoopbackV4(host);
}

}  // namespace aerie
