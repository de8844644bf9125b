#include "server/checkpoint/fc_digest.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/server/checkpoint/tiny_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

std::string DigestOf(const TinyHead& head) {
  const TemporaryFolder folder;
  head.Write(folder);
  const auto checkpoint = LoadCheckpoint(folder.path("head"), folder.path("target"));
  EXPECT_THAT(checkpoint, IsOk());
  return FcDigest(*checkpoint);
}

// tests/client/python/test_travel.py computes the same of the demo's head.
TEST(FcDigestTest, IsSha256OfTypeShapeAndBytes) {
  TinyHead head;
  TensorToWrite& fc = head.Tensor("fc.weight");
  fc.bytes.assign(fc.bytes.size(), '\0');
  // printf 'F32 12 36\n' | cat - <(head -c 1728 /dev/zero) | sha256sum
  EXPECT_EQ(DigestOf(head), "76a76c3c07b7b6cdd5567be0dbc78aa1ddf26f533cf1a0c02f1d604cc4cada85");
}

TEST(FcDigestTest, ChangesWithEveryValueAndWithNothingElse) {
  TinyHead head;
  const std::string plain = DigestOf(head);
  EXPECT_EQ(plain.size(), 64u);
  head.Tensor("lm_head.weight").bytes[0] ^= 1;
  EXPECT_EQ(DigestOf(head), plain);
  TensorToWrite& fc = head.Tensor("fc.weight");
  std::set<std::string> digests = {plain};
  for (const size_t at : {size_t{0}, fc.bytes.size() / 2, fc.bytes.size() - 4}) {
    fc.bytes[at] ^= 1;
    digests.insert(DigestOf(head));
  }
  EXPECT_EQ(digests.size(), 4u);
}

TEST(FcDigestTest, HeadsWithNormsInFrontOfFcHaveNone) {
  TinyHead before;
  before.Set("norm_before_fc", "true");
  before.tensors.push_back({"input_norm.weight", "F32", {36}, BytesOf(Noise(36, 4))});
  EXPECT_EQ(DigestOf(before), "");
}

}  // namespace
}  // namespace aerie
