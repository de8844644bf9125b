#include "server/engine/counter_random.h"

namespace aerie {
namespace {

constexpr int kRounds = 10;
constexpr uint64_t kMultiplier0 = 0xD2511F53;
constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kKeyStep0 = 0x9E3779B9;
constexpr uint32_t kKeyStep1 = 0xBB67AE85;

uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

}  // namespace

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {High(product1) ^ counter[1] ^ key[0], Low(product1),
               High(product0) ^ counter[3] ^ key[1], Low(product0)};
    key[0] += kKeyStep0;
    key[1] += kKeyStep1;
  }
  return counter;
}

double UniformAt(uint64_t seed, int64_t position, int32_t node, uint32_t draw) {
  const uint64_t place = static_cast<uint64_t>(position);
  const std::array<uint32_t, 4> block = Philox4x32(
      {draw, static_cast<uint32_t>(node), Low(place), High(place)}, {Low(seed), High(seed)});
  const uint64_t bits = (uint64_t{block[1]} << 32 | block[0]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace aerie
