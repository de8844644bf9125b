#include "server/checkpoint/digest.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace aerie {
namespace {

TEST(DigestTest, EveryByteAndTheLengthCount) {
  const std::string base(100, 'x');
  std::set<uint64_t> seen = {Fingerprint64(base)};
  for (size_t i = 0; i < base.size(); ++i) {
    std::string changed = base;
    changed[i] ^= 1;
    EXPECT_TRUE(seen.insert(Fingerprint64(changed)).second) << "byte " << i;
  }
  for (size_t length = 0; length < base.size(); ++length) {
    EXPECT_TRUE(seen.insert(Fingerprint64(base.substr(0, length))).second) << "length " << length;
  }
}

TEST(DigestTest, ZerosOfDifferentLengthDiffer) {
  EXPECT_NE(Fingerprint64(std::string(32, '\0')), Fingerprint64(std::string(40, '\0')));
}

TEST(DigestTest, TheSeedChainsFiles) {
  EXPECT_NE(Fingerprint64("b", Fingerprint64("a")), Fingerprint64("a", Fingerprint64("b")));
}

// A digest that differs between builds would tell two servers with the same weights apart.
TEST(DigestTest, IsFixed) {
  EXPECT_EQ(Fingerprint64("the same on every machine, whatever its compiler"),
            16018424474420907537u);
}

}  // namespace
}  // namespace aerie
