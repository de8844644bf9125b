#include "common/session_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;

// Valid, and close to every bound that the cases step over.
SessionOptions SampledTree() {
  SessionOptions options;
  options.max_k = 15;
  options.tree = TreeShape{.depth = 5, .top_k = 3, .total_tokens = 15};
  options.temperature = 0.7f;
  options.top_m = 3;
  options.probs = ProposalProbs::kTopM;
  options.start = 7;
  options.client = std::string(64, 'c');
  return options;
}

struct BadOptionsCase {
  std::string name;
  void (*spoil)(SessionOptions*);
  std::vector<std::string> named;  // fields that the message must name
};

class BadSessionOptionsTest : public ::testing::TestWithParam<BadOptionsCase> {};

TEST_P(BadSessionOptionsTest, AreRefusedWithTheFieldsNamed) {
  SessionOptions options = SampledTree();
  ASSERT_THAT(options.Validate(), IsOk());
  GetParam().spoil(&options);
  const absl::Status status = options.Validate();
  EXPECT_THAT(status, Refuses(absl::StatusCode::kInvalidArgument, kReasonOptionsInvalid));
  for (const std::string& field : GetParam().named) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

INSTANTIATE_TEST_SUITE_P(
    Cases, BadSessionOptionsTest,
    ::testing::ValuesIn(std::vector<BadOptionsCase>{
        {"NegativeTemperature",
         [](SessionOptions* o) { o->temperature = -0.5f; },
         {"options.sampling.temperature is -0.5"}},
        {"TemperatureIsNaN",
         [](SessionOptions* o) { o->temperature = kNaN; },
         {"options.sampling.temperature is nan"}},
        {"TemperatureIsInfinite",
         [](SessionOptions* o) { o->temperature = kInfinity; },
         {"options.sampling.temperature is inf"}},
        {"TopMWithoutTemperature",
         [](SessionOptions* o) { o->temperature = 0.0f; },
         {"options.sampling.top_m", "options.sampling.temperature"}},
        {"ProbsWithoutTemperature",
         [](SessionOptions* o) {
           o->temperature = 0.0f;
           o->top_m = 0;
         },
         {"options.sampling.proposal_probs", "options.sampling.temperature"}},
        {"NegativeTopM", [](SessionOptions* o) { o->top_m = -1; }, {"options.sampling.top_m"}},
        {"NegativeMaxK", [](SessionOptions* o) { o->max_k = -1; }, {"options.max_k is -1"}},
        {"NoDepth", [](SessionOptions* o) { o->tree->depth = 0; }, {"options.tree.depth is 0"}},
        {"TreeOfWidthOne",
         [](SessionOptions* o) { o->tree->top_k = 1; },
         {"options.tree.top_k is 1", "leave tree unset"}},
        {"FewerTokensThanLevels",
         [](SessionOptions* o) { o->tree->total_tokens = 4; },
         {"options.tree.total_tokens is 4", "options.tree.depth is 5"}},
        {"MoreTokensThanMaxK",
         [](SessionOptions* o) { o->max_k = 14; },
         {"options.tree.total_tokens is 15", "options.max_k is 14"}},
        {"MoreTokensThanAreDrawn",
         [](SessionOptions* o) {
           o->max_k = 16;
           o->tree->total_tokens = 16;
         },
         {"options.tree.total_tokens is 16", "depth 5", "top_k 3", "sampling", "at most 15"}},
        {"MoreTokensThanAGreedyTreeHas",
         [](SessionOptions* o) {
           *o = SessionOptions();
           o->tree = TreeShape{.depth = 2, .top_k = 3, .total_tokens = 13};
         },
         {"options.tree.total_tokens is 13", "at most 12"}},
        {"MoreChildrenThanThereIsToDrawFrom",
         [](SessionOptions* o) { o->top_m = 2; },
         {"options.tree.top_k is 3", "options.sampling.top_m is 2"}},
        {"AdaptiveTree",
         [](SessionOptions* o) { o->adaptive_k = true; },
         {"options.adaptive_k", "options.tree"}},
        {"ForkAndStart", [](SessionOptions* o) { o->fork_of = "abc"; }, {"fork", "start is 7"}},
        {"ForkLengthWithoutASession",
         [](SessionOptions* o) { o->fork_length = 3; },
         {"fork.length is 3", "fork.session_id"}},
        {"NegativeForkLength",
         [](SessionOptions* o) {
           o->start = 0;
           o->fork_of = "abc";
           o->fork_length = -3;
         },
         {"fork.length -3"}},
        {"NegativeStart", [](SessionOptions* o) { o->start = -1; }, {"start is -1"}},
        {"LongClient", [](SessionOptions* o) { o->client += 'c'; }, {"client has 65 bytes"}},
    }),
    [](const auto& test) { return test.param.name; });

TEST(SessionOptionsTest, TheDefaultIsAGreedyChain) {
  EXPECT_THAT(SessionOptions().Validate(), IsOk());
}

TEST(SessionOptionsTest, TreesUpToEveryNodeThatTheSearchMakesAreTaken) {
  SessionOptions options;
  options.tree = TreeShape{.depth = 2, .top_k = 3, .total_tokens = 12};
  EXPECT_THAT(options.Validate(), IsOk());
  options.tree = TreeShape{.depth = 1, .top_k = 2, .total_tokens = 1};
  EXPECT_THAT(options.Validate(), IsOk());
}

TEST(SessionOptionsTest, SizesWhoseProductLeavesEveryIntegerAreJudgedAllTheSame) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  SessionOptions options;
  options.tree = TreeShape{.depth = kMost, .top_k = kMost, .total_tokens = kMost};
  EXPECT_THAT(options.Validate(), IsOk());
}

}  // namespace
}  // namespace aerie
