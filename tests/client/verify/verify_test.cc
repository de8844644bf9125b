// The cases that the Python package is checked against too.
#include "client/verify.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "common/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace aerie {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

struct VerifyCase {
  std::string name;
  Json json;

  DraftTree Tree() const {
    DraftTree tree;
    json.at("tokens").get_to(tree.tokens);
    json.at("parents").get_to(tree.parents);
    tree.log_probs.assign(tree.tokens.size(), -1.0f);
    for (const Json& entry : json.value("distributions", Json::array())) {
      tree.distributions.push_back({.node = entry.at("node").get<int32_t>(),
                                    .tokens = entry.at("tokens").get<std::vector<int32_t>>(),
                                    .probs = entry.at("probs").get<std::vector<float>>()});
    }
    return tree;
  }

  // null stands for NaN, which JSON lacks.
  std::vector<float> Target() const {
    std::vector<float> values;
    for (const Json& row : json.at("target")) {
      for (const Json& value : row) {
        values.push_back(value.is_null() ? std::nanf("") : value.get<float>());
      }
    }
    return values;
  }
};

std::vector<VerifyCase> ReadCases() {
  const char* source = std::getenv("AERIE_SOURCE_DIR");
  std::ifstream file(std::string(source == nullptr ? "." : source) +
                     "/tests/testing/verify_cases.json");
  AERIE_CHECK(file.is_open()) << "no cases; run from the repository or set AERIE_SOURCE_DIR";
  std::vector<VerifyCase> cases;
  for (const Json& json : Json::parse(file)) cases.push_back({json.at("name"), json});
  return cases;
}

absl::StatusOr<TreeVerdict> Judge(const VerifyCase& c, std::vector<double>* uniforms) {
  const std::string rule = c.json.at("rule");
  if (rule == "greedy") {
    return VerifyGreedy(c.Tree(), c.json.at("argmax").get<std::vector<int32_t>>());
  }
  const std::vector<float> values = c.Target();
  const auto vocab_size = static_cast<int32_t>(c.json.at("target").at(0).size());
  const auto uniform = [&] {
    AERIE_CHECK(!uniforms->empty()) << "more draws than the case has numbers";
    const double u = uniforms->front();
    uniforms->erase(uniforms->begin());
    return u;
  };
  return rule == "chain_sampled" ? VerifyChainSampled(c.Tree(), {values, vocab_size}, uniform)
                                 : VerifyTreeSampled(c.Tree(), {values, vocab_size}, uniform);
}

class VerifyTest : public ::testing::TestWithParam<VerifyCase> {};

TEST_P(VerifyTest, Judges) {
  const VerifyCase& c = GetParam();
  auto uniforms = c.json.value("uniforms", std::vector<double>());
  const absl::StatusOr<TreeVerdict> verdict = Judge(c, &uniforms);
  if (c.json.contains("error")) {
    EXPECT_EQ(verdict.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(verdict.status().message()),
                HasSubstr(c.json.at("error").get<std::string>()));
    return;
  }
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->path, c.json.at("path").get<std::vector<int32_t>>());
  EXPECT_EQ(verdict->bonus, c.json.at("bonus").get<int32_t>());
  std::vector<int32_t> tokens;
  for (const int32_t node : verdict->path) tokens.push_back(c.Tree().tokens.at(node - 1));
  tokens.push_back(verdict->bonus);
  EXPECT_EQ(verdict->tokens, tokens);
  EXPECT_THAT(uniforms, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Cases, VerifyTest, ::testing::ValuesIn(ReadCases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
