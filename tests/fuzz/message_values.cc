#include "tests/fuzz/message_values.h"

#include <cfloat>
#include <iterator>

#include "tests/fuzz/damage.h"

namespace aerie {

size_t MessageValues::Below(size_t limit) { return aerie::Below(limit, &random_); }

float MessageValues::Real(float now) {
  static constexpr float kEdges[] = {0.0f,
                                     -0.0f,
                                     1.0f,
                                     -1.0f,
                                     FLT_MIN,
                                     FLT_TRUE_MIN,
                                     FLT_MAX,
                                     -FLT_MAX,
                                     std::numeric_limits<float>::infinity(),
                                     -std::numeric_limits<float>::infinity(),
                                     std::numeric_limits<float>::quiet_NaN()};
  return Below(3) == 0 ? now * 0.5f : kEdges[Below(std::size(kEdges))];
}

std::string MessageValues::Text(const std::string& now) {
  switch (Below(6)) {
    case 0:
      return "";
    case 1:
      return std::string(1 + Below(300), 'a');
    case 2:
      return now + "\xc3\xa9";  // one letter, two bytes
    case 3: {
      size_t half = now.size() / 2;
      while (half > 0 && (static_cast<unsigned char>(now[half]) & 0xc0u) == 0x80u) --half;
      return now.substr(0, half);
    }
    case 4:
      // How scripts of calls name the sessions that they opened (call_script.h).
      return "@" + std::to_string(Below(5));
    default:
      return std::string(1, static_cast<char>(Below(0x80))) + now;
  }
}

std::string MessageValues::Bytes(std::string bytes) {
  static constexpr uint32_t kFloats[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f7fffffu,
                                         0x00000001u, 0x80000000u, 0x3f800000u};
  switch (Below(6)) {
    case 0:
      bytes.resize(bytes.empty() ? 0 : Below(bytes.size()));
      break;
    case 1:
      bytes.append(1 + Below(64), static_cast<char>(Below(256)));
      break;
    case 2:
      if (bytes.size() >= 4) {
        const uint32_t bits = kFloats[Below(std::size(kFloats))];
        const size_t at = Below(bytes.size() / 4) * 4;
        for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(bits >> (8 * i));
      }
      break;
    case 3:
      bytes += bytes.substr(0, 256);
      break;
    default:
      if (!bytes.empty()) bytes[Below(bytes.size())] = static_cast<char>(Below(256));
  }
  return bytes;
}

}  // namespace aerie
