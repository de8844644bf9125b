#include "server/transport/drafter_directory.h"

#include <memory>
#include <string>

#include "common/error_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace aerie {
namespace {

using ::testing::HasSubstr;

ServedDrafterPtr Drafter(const std::string& name, const std::string& tag) {
  auto drafter = std::make_shared<ServedDrafter>();
  drafter->name = name;
  drafter->session_tag = tag;
  return drafter;
}

class DrafterDirectoryTest : public testing::Test {
 protected:
  const ServedDrafterPtr first_ = Drafter("a", "0001");
  const ServedDrafterPtr second_ = Drafter("b", "0002");
  const ServedDrafterPtr newer_ = Drafter("a", "0003");
  DrafterDirectory directory_;
};

TEST_F(DrafterDirectoryTest, GivesTheOnlyOneWhateverIsAskedFor) {
  directory_.Serve(first_);
  // Its engine compares the name with all else that the manifest says, and knows what it closed.
  EXPECT_EQ(directory_.ForManifest("").value(), first_);
  EXPECT_EQ(directory_.ForManifest("b").value(), first_);
  EXPECT_EQ(directory_.ForSession("ffff0123").value(), first_);
}

TEST_F(DrafterDirectoryTest, GoesByNameForNewSessionsAndByIdForOpenOnes) {
  directory_.Serve(first_);
  directory_.Serve(second_);
  EXPECT_EQ(directory_.ForManifest("a").value(), first_);
  EXPECT_EQ(directory_.ForManifest("b").value(), second_);
  EXPECT_EQ(directory_.ForSession("0002abcdef").value(), second_);
  EXPECT_EQ(directory_.ForSession("0001abcdef").value(), first_);
}

TEST_F(DrafterDirectoryTest, RefusesAManifestThatNamesNoneOrOneThatIsNotThere) {
  directory_.Serve(first_);
  directory_.Serve(second_);
  for (const char* name : {"", "c"}) {
    const absl::Status status = directory_.ForManifest(name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("expected one of: a, b"));
    const ErrorDetail detail = DetailOf(status);
    EXPECT_EQ(detail.reason, kReasonManifestMismatch);
    ASSERT_EQ(detail.mismatches.size(), 1u);
    EXPECT_EQ(detail.mismatches[0].field, "drafter");
  }
}

TEST_F(DrafterDirectoryTest, KnowsNoSessionOfAVersionThatIsGone) {
  directory_.Serve(first_);
  directory_.Serve(second_);
  const absl::Status status = directory_.ForSession("0009abcdef").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(DetailOf(status).reason, kReasonSessionUnknown);
  EXPECT_EQ(directory_.ForSession("").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DrafterDirectoryTest, LeavesSessionsWithTheVersionThatTheyBeganOn) {
  directory_.Serve(first_);
  directory_.Serve(newer_);
  EXPECT_EQ(directory_.ForManifest("a").value(), newer_);
  EXPECT_EQ(directory_.ForManifest("").value(), newer_);
  EXPECT_EQ(directory_.ForSession("0001abcdef").value(), first_);
  EXPECT_THAT(directory_.Current(), testing::ElementsAre(newer_));
  directory_.Remove(first_.get());
  EXPECT_EQ(first_.use_count(), 1) << "whoever removed it may free it";
  EXPECT_EQ(directory_.ForSession("0003abcdef").value(), newer_);
}

TEST_F(DrafterDirectoryTest, OpensNothingOnARetiredOne) {
  directory_.Serve(first_);
  directory_.Serve(second_);
  directory_.Retire("a");
  EXPECT_FALSE(directory_.ForManifest("a").ok());
  EXPECT_EQ(directory_.ForSession("0001abcdef").value(), first_);
  EXPECT_EQ(directory_.First(), second_);
}

}  // namespace
}  // namespace aerie
