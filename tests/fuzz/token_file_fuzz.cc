// Any text as a token file: it is refused without showing a token, or each of its lines lets in
// whom it names, and nobody else.
#include <cctype>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/check.h"
#include "server/transport/token_book.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using aerie::KnownCaller;
using aerie::TokenBook;

struct Line {
  std::string roles, name, proof;
};

// The plain way: words of each line that says something.
std::vector<Line> LinesOf(const std::string& text) {
  std::vector<Line> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Line read;
    if (!(words >> read.roles) || read.roles[0] == '#') continue;
    words >> read.name >> read.proof;
    out.push_back(read);
  }
  return out;
}

bool IsToken(const std::string& proof) {
  return proof != "certificate" && proof.rfind("sha256:", 0) != 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto book = TokenBook::Parse(text, "tokens");
  const std::vector<Line> lines = LinesOf(text);
  if (!book.ok()) {
    const std::string message(book.status().message());
    AERIE_CHECK(message.find("; expected ") != std::string::npos) << message;
    for (const Line& line : lines) {
      // Shorter ones, and words, may stand in it by chance.
      if (line.proof.size() < 16 || line.proof.find_first_of("0123456789") == std::string::npos) {
        continue;
      }
      AERIE_CHECK(message.find(line.proof) == std::string::npos) << message;
    }
    return 0;
  }
  AERIE_CHECK(book->size() == lines.size()) << book->size() << " entries of " << lines.size();
  for (const Line& line : lines) {
    const auto caller = IsToken(line.proof)           ? book->FindToken(line.proof)
                        : line.proof == "certificate" ? book->FindCertificate(line.name)
                                                      : KnownCaller{line.name, 1};
    AERIE_CHECK(caller.has_value()) << line.name;
    AERIE_CHECK(caller->name == line.name && caller->roles >= 1 && caller->roles <= 7);
    // Nothing near it is a proof too.
    if (!IsToken(line.proof)) continue;
    AERIE_CHECK(!book->FindToken(line.proof + " ").has_value());
    AERIE_CHECK(!book->FindToken(line.proof.substr(1)).has_value() || lines.size() > 1);
  }
  AERIE_CHECK(!book->FindToken("").has_value() && !book->FindToken("certificate").has_value());
  return 0;
}
