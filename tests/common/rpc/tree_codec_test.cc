// What a proposal looks like on the wire, and which ones a client takes for broken.
#include "common/rpc/tree_codec.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr TreeExtras kBoth = {.ancestor_mask = true, .links = true};

// root -> 300, 6; 300 -> 7. Its token at the second level is not the last one's child.
DraftTree SmallTree() {
  DraftTree tree;
  tree.tokens = {300, 6, 7};
  tree.parents = {0, 0, 1};
  tree.log_probs = {-0.5f, -2.0f, -0.5f};
  tree.chosen_probs = {0.5f, 0.25f, 1.0f};
  tree.distributions = {{0, {300, 9, 6}, {0.5f, 0.25f, 0.25f}}, {1, {7}, {1.0f}}};
  return tree;
}

v1::DraftTree SmallMessage() {
  v1::DraftTree message;
  EncodeDraftTree(SmallTree(), 40, kBoth, &message);
  return message;
}

TEST(DraftTreeCodecTest, HasTheKnownBytes) {
  EXPECT_EQ(absl::BytesToHexString(SmallMessage().SerializeAsString()),
            "0a04ac020607"                  // token_ids 300, 6, 7
            "1203000001"                    // parents 0, 0, 1
            "1a0c000000bf000000c0000000bf"  // log_probs
            "220329292a"                    // positions 41, 41, 42
            "2a0c0000003f0000803e0000803f"  // chosen_probs
            "3214"                          // distribution of the root
            "1204ac020906"                  // 300, 9, 6
            "1a0c0000003f0000803e0000803e"  // 0.5, 0.25, 0.25
            "320b0801"                      // distribution of node 1
            "120107"                        // 7
            "1a040000803f"                  // 1
            "3a040103050b"                  // mask: 0; 0,1; 0,2; 0,1,3
            "420402060101"                  // first_child 1, 3, -1, -1 as zigzag
            "4a0401040101");                // next_sibling -1, 2, -1, -1
}

TEST(DraftTreeCodecTest, ComesBackAsItWent) {
  EXPECT_EQ(DecodeDraftTree(SmallMessage()).value(), SmallTree());
  v1::DraftTree empty;
  EncodeDraftTree(DraftTree(), 40, kBoth, &empty);
  EXPECT_EQ(DecodeDraftTree(empty).value(), DraftTree());
}

TEST(DraftTreeCodecTest, TellsMaskAndLinksOnlyOnDemand) {
  v1::DraftTree message;
  EncodeDraftTree(SmallTree(), 40, {}, &message);
  EXPECT_THAT(message.ancestor_mask(), IsEmpty());
  EXPECT_THAT(message.first_child(), IsEmpty());
  EXPECT_THAT(message.next_sibling(), IsEmpty());
  EXPECT_THAT(message.positions(), ElementsAre(41, 41, 42));
  v1::DraftTree masked;
  EncodeDraftTree(SmallTree(), 40, {.ancestor_mask = true}, &masked);
  EXPECT_EQ(masked.ancestor_mask(), std::string("\x01\x03\x05\x0b"));
  EXPECT_THAT(masked.first_child(), IsEmpty());
}

struct BrokenTreeCase {
  std::string name;
  void (*spoil)(v1::DraftTree*);
  std::string message;
};

class BrokenTreeTest : public ::testing::TestWithParam<BrokenTreeCase> {};

TEST_P(BrokenTreeTest, IsInternal) {
  v1::DraftTree message = SmallMessage();
  ASSERT_TRUE(DecodeDraftTree(message).ok()) << DecodeDraftTree(message).status();
  GetParam().spoil(&message);
  const absl::Status status = DecodeDraftTree(message).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
  EXPECT_THAT(std::string(status.message()), HasSubstr("; expected "));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BrokenTreeTest,
    ::testing::ValuesIn(std::vector<BrokenTreeCase>{
        {"TokenBeyondInt32", [](v1::DraftTree* m) { m->set_token_ids(0, 0x80000000u); },
         "token id 2147483648"},
        {"OneLogProbTooFew", [](v1::DraftTree* m) { m->mutable_log_probs()->RemoveLast(); },
         "2 log-probabilities"},
        {"ParentBehindItsChild", [](v1::DraftTree* m) { m->set_parents(0, 1); },
         "node 1 of a draft tree has parent 1"},
        {"ParentBeyondInt32", [](v1::DraftTree* m) { m->set_parents(0, 0xffffffffu); },
         "node 1 of a draft tree has parent -1"},
        {"OnePositionTooFew", [](v1::DraftTree* m) { m->mutable_positions()->RemoveLast(); },
         "3 tokens and 2 positions"},
        {"SiblingsAtUnequalPositions", [](v1::DraftTree* m) { m->set_positions(1, 42); },
         "puts node 2 at position 42 and its root at 40"},
        {"OneChosenProbTooFew", [](v1::DraftTree* m) { m->mutable_chosen_probs()->RemoveLast(); },
         "2 chosen probabilities"},
        {"ProbIsNaN",
         [](v1::DraftTree* m) { m->mutable_distributions(0)->set_probs(1, std::nanf("")); },
         "the probability nan"},
        {"DistributionBeyondInt32",
         [](v1::DraftTree* m) { m->mutable_distributions(0)->set_node(0xffffffffu); },
         "a distribution at node -1"},
        {"TokenOfADistributionBeyondInt32",
         [](v1::DraftTree* m) { m->mutable_distributions(1)->set_token_ids(0, 0xffffffffu); },
         "token id 4294967295"},
        {"AnotherMask", [](v1::DraftTree* m) { (*m->mutable_ancestor_mask())[3] = '\x0d'; },
         "another ancestor mask"},
        {"ShortMask", [](v1::DraftTree* m) { m->mutable_ancestor_mask()->pop_back(); },
         "another ancestor mask"},
        {"AnotherFirstChild", [](v1::DraftTree* m) { m->set_first_child(0, 2); }, "other links"},
        {"AnotherSibling", [](v1::DraftTree* m) { m->set_next_sibling(1, -1); }, "other links"},
        {"LinksWithoutSiblings", [](v1::DraftTree* m) { m->clear_next_sibling(); }, "other links"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(DraftTreeCodecTest, MakesNoMaskOfATreeWhoseMaskWouldNotFitIntoMemory) {
  constexpr int kTokens = 1 << 20;
  v1::DraftTree message;
  for (int i = 0; i < kTokens; ++i) {
    message.add_token_ids(1);
    message.add_parents(static_cast<uint32_t>(i));
    message.add_log_probs(-1.0f);
  }
  message.set_ancestor_mask("x");
  EXPECT_THAT(std::string(DecodeDraftTree(message).status().message()),
              HasSubstr("another ancestor mask"));
}

TEST(DraftTreeCodecTest, TakesATreeOfAServerThatTellsNoPositions) {
  v1::DraftTree message = SmallMessage();
  message.clear_positions();
  EXPECT_EQ(DecodeDraftTree(message).value(), SmallTree());
}

}  // namespace
}  // namespace aerie::rpc
