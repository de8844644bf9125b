#include "server/checkpoint/digest.h"

#include <array>
#include <bit>
#include <cstddef>

namespace aerie {
namespace {

constexpr uint64_t kOddA = 0x9e3779b97f4a7c15;  // odd, so that multiplying loses nothing
constexpr uint64_t kOddB = 0xc2b2ae3d27d4eb4f;

uint64_t LoadLittleEndian(const char* bytes, size_t count) {
  uint64_t word = 0;
  for (size_t i = 0; i < count; ++i) {
    word |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

uint64_t Mix(uint64_t state, uint64_t word) {
  return std::rotl(state ^ (word * kOddB), 31) * kOddA;
}

}  // namespace

uint64_t Fingerprint64(std::string_view bytes, uint64_t seed) {
  // Four lanes: their multiplications run side by side, and a multiply takes several cycles.
  std::array<uint64_t, 4> lanes = {seed + kOddA, seed ^ kOddB, seed - kOddA, ~seed};
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 32; left -= 32, at += 32) {
    for (size_t lane = 0; lane < 4; ++lane) {
      lanes[lane] = Mix(lanes[lane], LoadLittleEndian(at + 8 * lane, 8));
    }
  }
  uint64_t digest = bytes.size();
  for (const uint64_t lane : lanes) digest = Mix(digest, lane);
  for (; left > 0;) {
    const size_t count = left < 8 ? left : 8;
    digest = Mix(digest, LoadLittleEndian(at, count));
    at += count;
    left -= count;
  }
  digest ^= digest >> 32;
  digest *= kOddB;
  return digest ^ (digest >> 29);
}

}  // namespace aerie
