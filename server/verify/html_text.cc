#include "server/verify/html_text.h"

namespace aerie {
namespace {

// Bytes of the character that starts at text[at], 0 when none does.
size_t CharacterLength(absl::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  size_t length = 0;
  if (first < 0x80) length = 1;
  if (first >= 0xc2 && first < 0xe0) length = 2;
  if (first >= 0xe0 && first < 0xf0) length = 3;
  if (first >= 0xf0 && first < 0xf5) length = 4;
  if (at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

void AppendAscii(char character, std::string& escaped) {
  switch (character) {
    case '&':
      escaped += "&amp;";
      return;
    case '<':
      escaped += "&lt;";
      return;
    case '>':
      escaped += "&gt;";
      return;
    case '"':
      escaped += "&quot;";
      return;
    case '\'':
      escaped += "&#39;";
      return;
    case '\n':
    case '\t':
      escaped += ' ';
      return;
    default:
      if (character < 0x20 || character == 0x7f) {
        escaped += "\xef\xbf\xbd";
      } else {
        escaped += character;
      }
  }
}

}  // namespace

std::string Escaped(absl::string_view text) {
  std::string escaped;
  for (size_t at = 0; at < text.size();) {
    const size_t length = CharacterLength(text, at);
    if (length == 1) {
      AppendAscii(text[at], escaped);
    } else if (length == 0) {
      escaped += "\xef\xbf\xbd";
    } else {
      escaped.append(text.data() + at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return escaped;
}

}  // namespace aerie
