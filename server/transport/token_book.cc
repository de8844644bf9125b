#include "server/transport/token_book.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

// Shorter ones can be guessed over the network.
constexpr size_t kLeastTokenBytes = 16;
constexpr size_t kMostNameBytes = 64;

absl::Status Bad(const std::string& seen, const std::string& expected, const std::string& remedy) {
  return absl::InvalidArgumentError(absl::StrCat(seen, "; expected ", expected, "; ", remedy));
}

absl::StatusOr<uint32_t> ReadRoles(absl::string_view text) {
  uint32_t roles = 0;
  for (const absl::string_view word : absl::StrSplit(text, ',')) {
    bool known = false;
    for (const Role role : {Role::kDraft, Role::kAdmin, Role::kMetrics}) {
      if (word != RoleName(role)) continue;
      roles |= static_cast<uint32_t>(role);
      known = true;
    }
    // Not shown: who has the columns the wrong way round has put the token here.
    if (!known) {
      return Bad("has a role that does not exist", "draft, admin or metrics, with commas between",
                 "begin the line with the roles");
    }
  }
  return roles;
}

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= kMostNameBytes &&
         std::all_of(text.begin(), text.end(), [](char letter) {
           return absl::ascii_isalnum(static_cast<unsigned char>(letter)) || letter == '.' ||
                  letter == '-' || letter == '_';
         });
}

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char letter) {
    return absl::ascii_isxdigit(static_cast<unsigned char>(letter));
  });
}

}  // namespace

const char* RoleName(Role role) {
  switch (role) {
    case Role::kDraft:
      return "draft";
    case Role::kAdmin:
      return "admin";
    case Role::kMetrics:
      return "metrics";
  }
  return "unknown";
}

TokenBook::Digest TokenBook::DigestOf(std::string_view token) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

absl::StatusOr<TokenBook::Entry> TokenBook::ParseLine(std::string_view line) {
  const absl::string_view text(line.data(), line.size());
  const std::vector<absl::string_view> words =
      absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.size() != 3) {
    return Bad(absl::StrCat("has ", words.size(), " words"), "three: roles, name, token",
               "write them with blanks between, and none within");
  }
  Entry entry;
  AERIE_ASSIGN_OR_RETURN(entry.caller.roles, ReadRoles(words[0]));
  if (!IsName(words[1])) {
    return Bad("has a name that cannot be one",
               "1 to 64 letters, digits, dots, dashes, underscores",
               "write the roles, then the name, then the token");
  }
  entry.caller.name = std::string(words[1]);
  absl::string_view proof = words[2];
  if (proof == "certificate") return entry;
  if (absl::ConsumePrefix(&proof, "sha256:")) {
    if (proof.size() != 64 || !IsHex(proof)) {
      return Bad("has a SHA-256 that is none", "64 hexadecimal digits",
                 "print it with: printf %s TOKEN | sha256sum");
    }
    const std::string bytes = absl::HexStringToBytes(proof);
    entry.digest.emplace();
    std::copy(bytes.begin(), bytes.end(), entry.digest->begin());
    return entry;
  }
  if (proof.size() < kLeastTokenBytes) {
    return Bad(absl::StrCat("has a token of ", proof.size(), " letters"),
               absl::StrCat(kLeastTokenBytes, " or more"), "make one with: openssl rand -hex 24");
  }
  if (!std::all_of(proof.begin(), proof.end(), [](char letter) {
        return absl::ascii_isgraph(static_cast<unsigned char>(letter));
      })) {
    return Bad("has a token that no call can carry", "printable ASCII",
               "make one with: openssl rand -hex 24");
  }
  entry.digest = DigestOf(std::string_view(proof.data(), proof.size()));
  return entry;
}

absl::StatusOr<TokenBook> TokenBook::Parse(std::string_view text, const std::string& path) {
  TokenBook book;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    absl::StatusOr<Entry> entry = ParseLine(std::string_view(line.data(), line.size()));
    if (!entry.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("token file ", path, " line ", number, " ", entry.status().message()));
    }
    for (const Entry& other : book.entries_) {
      const bool same = entry->digest.has_value()
                            ? other.digest == entry->digest
                            : !other.digest.has_value() && other.caller.name == entry->caller.name;
      if (!same) continue;
      return Bad(
          absl::StrCat("token file ", path, " line ", number, " repeats what proves another line"),
          "each token once", "give one of them a token of its own, or remove it");
    }
    book.entries_.push_back(*std::move(entry));
  }
  if (book.entries_.empty()) {
    return Bad(absl::StrCat("token file ", path, " names nobody"), "at least one line",
               "write one like: draft worker-a TOKEN");
  }
  return book;
}

std::optional<KnownCaller> TokenBook::FindToken(std::string_view token) const {
  const Digest asked = DigestOf(token);
  std::optional<KnownCaller> found;
  for (const Entry& entry : entries_) {
    if (!entry.digest.has_value()) continue;
    // No early end: all are compared, whichever it is.
    if (CRYPTO_memcmp(entry.digest->data(), asked.data(), asked.size()) == 0) found = entry.caller;
  }
  return found;
}

std::optional<KnownCaller> TokenBook::FindCertificate(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (!entry.digest.has_value() && entry.caller.name == name) return entry.caller;
  }
  return std::nullopt;
}

}  // namespace aerie
