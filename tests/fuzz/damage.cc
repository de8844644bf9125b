#include "tests/fuzz/damage.h"

#include <algorithm>
#include <array>

namespace aerie {

size_t Below(size_t limit, std::mt19937_64* random) {
  return static_cast<size_t>((*random)() % limit);
}

void Damage(std::string* bytes, std::mt19937_64* random) {
  const auto below = [random](size_t limit) { return Below(limit, random); };
  static constexpr std::array<const char*, 8> kInteresting = {
      "\xff\xff\xff\xff", "\x7f", "\x80", "0", "-1", "1e999", "\xc3\x28", "4294967296"};
  const size_t at = bytes->empty() ? 0 : below(bytes->size());
  const size_t count = bytes->empty() ? 0 : 1 + below(std::min<size_t>(16, bytes->size() - at));
  switch (bytes->empty() ? 2 : below(8)) {
    case 0:
      (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << below(8)));
      return;
    case 1:
      (*bytes)[at] = static_cast<char>(below(256));
      return;
    case 2:
      bytes->insert(at, 1 + below(4), static_cast<char>(below(256)));
      return;
    case 3:
      bytes->erase(at, count);
      return;
    case 4:  // stands twice
      bytes->insert(below(bytes->size() + 1), bytes->substr(at, count * (1 + below(16))));
      return;
    case 5:
      bytes->replace(at, count, kInteresting[below(kInteresting.size())]);
      return;
    case 6:  // changes places with what follows
      std::rotate(bytes->begin() + static_cast<std::ptrdiff_t>(at),
                  bytes->begin() + static_cast<std::ptrdiff_t>(at + count - 1), bytes->end());
      return;
    default:
      bytes->resize(at);
  }
}

}  // namespace aerie
