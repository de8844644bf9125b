#include "client/session_key.h"

#include <algorithm>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace aerie {
namespace {

constexpr char kMetadataKey[] = "aerie-session";
constexpr size_t kMaxKeyLength = 64;

}  // namespace

std::string NewSessionKey() {
  // From the system, not from a seed: workers that start at the same moment must not share keys.
  std::random_device random;
  std::string key;
  for (int word = 0; word < 4; ++word) absl::StrAppendFormat(&key, "%08x", random());
  return key;
}

absl::Status CheckSessionKey(const std::string& key) {
  const bool fits = !key.empty() && key.size() <= kMaxKeyLength &&
                    std::all_of(key.begin(), key.end(), [](char c) {
                      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                             c == '-' || c == '_';
                    });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the session key is \"", absl::CHexEscape(key),
                   "\"; expected 1 to 64 letters, digits, dots, dashes or underscores, since it "
                   "travels as metadata; shorten it, or leave it empty for one of its own"));
}

void AddSessionKey(const std::string& key, grpc::ClientContext* context) {
  context->AddMetadata(kMetadataKey, key);
}

}  // namespace aerie
