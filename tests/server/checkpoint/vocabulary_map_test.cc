#include "server/checkpoint/vocabulary_map.h"

#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/safetensors/safetensors_writer.h"
#include "tests/server/checkpoint/three_parts.h"

namespace aerie {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A tensor with the bytes it views.
struct Owned {
  std::string bytes;
  TensorSpan span;

  template <typename T>
  Owned(std::string name, TensorType type, const std::vector<T>& values) : bytes(BytesOf(values)) {
    span = {std::move(name), type, {static_cast<int64_t>(values.size())}, bytes};
  }
  Owned(const Owned&) = delete;
};

std::vector<uint8_t> Mask(size_t size, const std::vector<int32_t>& members) {
  std::vector<uint8_t> mask(size, 0);
  for (const int32_t id : members) mask[id] = 1;
  return mask;
}

TEST(VocabularyMapTest, EntriesAreOffsetsFromTheDraftId) {
  Complaints complaints;
  const Owned d2t("d2t", TensorType::kI64, std::vector<int64_t>{0, 0, 3, 3, 10});
  EXPECT_THAT(ReadVocabularyMap(&d2t.span, nullptr, 5, 20, complaints),
              ElementsAre(0, 1, 5, 6, 14));
  const Owned narrow("d2t", TensorType::kI32, std::vector<int32_t>{0, 0, 3, 3, 10});
  EXPECT_THAT(ReadVocabularyMap(&narrow.span, nullptr, 5, 20, complaints),
              ElementsAre(0, 1, 5, 6, 14));
  EXPECT_THAT(complaints.list(), IsEmpty());
}

TEST(VocabularyMapTest, WithoutAMapEqualVocabulariesMeanEqualIds) {
  Complaints complaints;
  EXPECT_THAT(ReadVocabularyMap(nullptr, nullptr, 3, 3, complaints), ElementsAre(0, 1, 2));
  EXPECT_THAT(complaints.list(), IsEmpty());
}

TEST(VocabularyMapTest, AReducedVocabularyWithoutAMapIsRefused) {
  Complaints complaints;
  EXPECT_THAT(ReadVocabularyMap(nullptr, nullptr, 3, 4, complaints), IsEmpty());
  EXPECT_THAT(complaints.list(), ElementsAre(SaysWhatWhyAndHow("has no d2t")));
}

struct MapCase {
  std::string name;
  std::vector<int64_t> d2t;
  std::vector<int32_t> t2d;  // empty: no t2d
  std::string seen;
};

class VocabularyMapFaultTest : public testing::TestWithParam<MapCase> {};

TEST_P(VocabularyMapFaultTest, IsRefused) {
  constexpr int64_t kVocab = 20;
  const Owned d2t("d2t", TensorType::kI64, GetParam().d2t);
  const Owned t2d("t2d", TensorType::kBool, Mask(kVocab, GetParam().t2d));
  Complaints complaints;
  const auto map =
      ReadVocabularyMap(&d2t.span, GetParam().t2d.empty() ? nullptr : &t2d.span,
                        static_cast<int64_t>(GetParam().d2t.size()), kVocab, complaints);
  EXPECT_THAT(map, IsEmpty());
  EXPECT_THAT(complaints.list(), ElementsAre(SaysWhatWhyAndHow(GetParam().seen)));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, VocabularyMapFaultTest,
    testing::ValuesIn(std::vector<MapCase>{
        {"PastTheVocabulary", {0, 0, 18}, {}, "d2t[2] = 18 leads outside the target's 0..19"},
        {"BelowZero", {-1, 0, 0}, {}, "d2t[0] = -1"},
        {"Overflow", {0, INT64_MAX}, {}, "d2t[1] = 9223372036854775807"},
        {"SameTargetTwice", {5, 4, 4}, {}, "draft ids 0 and 1 map to target ids 5 and 5"},
        {"NotIncreasing", {5, 1, 4}, {}, "draft ids 0 and 1 map to target ids 5 and 2"},
        {"AnotherThanT2d",
         {0, 0, 3},
         {0, 1, 6},
         "draft id 2 maps to target id 5, which t2d leaves out"},
        // Offsets of these would be 2, 3, 3: read as offsets the map stays in range, and only t2d
        // tells.
        {"AbsoluteIdsByT2d", {2, 4, 5}, {2, 4, 5}, "which t2d leaves out"},
    }),
    [](const auto& test) { return test.param.name; });

TEST(VocabularyMapTest, AListOfAbsoluteIdsIsCalledOne) {
  const Owned d2t("d2t", TensorType::kI64, std::vector<int64_t>{2, 4, 18});
  Complaints complaints;
  ReadVocabularyMap(&d2t.span, nullptr, 3, 20, complaints);
  ASSERT_EQ(complaints.list().size(), 1);
  EXPECT_THAT(complaints.list()[0], HasSubstr("looks like a list of absolute target ids"));
}

TEST(VocabularyMapTest, WithoutT2dAPossibleButImplausibleMapIsRefused) {
  std::vector<int64_t> absolute(100);
  for (int64_t i = 0; i < 100; ++i) absolute[i] = 3 * i;
  for (const auto& [values, seen] : {std::pair{absolute, "no two kept tokens are neighbours"},
                                     std::pair{std::vector<int64_t>(100, 0), "never built"}}) {
    const Owned d2t("d2t", TensorType::kI64, values);
    Complaints complaints;
    EXPECT_THAT(ReadVocabularyMap(&d2t.span, nullptr, 100, 1000, complaints), IsEmpty());
    EXPECT_THAT(complaints.list(), ElementsAre(SaysWhatWhyAndHow(seen)));
  }
}

TEST(VocabularyMapTest, T2dVouchesForAnImplausibleMap) {
  std::vector<int32_t> first(100);
  std::iota(first.begin(), first.end(), 0);
  const Owned d2t("d2t", TensorType::kI64, std::vector<int64_t>(100, 0));
  const Owned t2d("t2d", TensorType::kBool, Mask(1000, first));
  Complaints complaints;
  EXPECT_EQ(ReadVocabularyMap(&d2t.span, &t2d.span, 100, 1000, complaints), first);
  EXPECT_EQ(CountTrue(t2d.span), 100);
}

}  // namespace
}  // namespace aerie
