// Who is known, and what each may do: the content of a token file.
//
// One line each: roles with commas between them, a name, and what proves it, with blanks between:
//
//   draft        worker-a   vd8oq2Zk0T3c5nWb9r7LxA
//   draft,admin  operator   sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//   metrics      prometheus certificate
//
// The proof is the token itself, its SHA-256, or the word `certificate`: whose client certificate
// has that name. Blank lines and lines that begin with # say nothing. A name may stand on several
// lines, so that a token can be replaced while the old one is still in use.
//
// Only digests are kept, and all of them are compared with the one that is asked about, each in
// constant time: how long an answer takes tells nothing of a token.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace aerie {

// A group of RPCs. draft: DraftService. admin: AdminService. metrics: the metrics page.
enum class Role : uint32_t { kDraft = 1, kAdmin = 2, kMetrics = 4 };
const char* RoleName(Role role);

struct KnownCaller {
  std::string name;
  uint32_t roles = 0;  // bits of Role
  bool May(Role role) const { return (roles & static_cast<uint32_t>(role)) != 0; }
};

class TokenBook {
 public:
  // INVALID_ARGUMENT names the line by its number and never shows what stands in the place of a
  // token. `path` is for messages.
  static absl::StatusOr<TokenBook> Parse(std::string_view text, const std::string& path);

  std::optional<KnownCaller> FindToken(std::string_view token) const;
  std::optional<KnownCaller> FindCertificate(std::string_view name) const;
  size_t size() const { return entries_.size(); }

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    KnownCaller caller;
    std::optional<Digest> digest;  // none: a certificate of that name
  };
  static Digest DigestOf(std::string_view token);
  static absl::StatusOr<Entry> ParseLine(std::string_view line);

  std::vector<Entry> entries_;
};

}  // namespace aerie
