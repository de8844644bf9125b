#include "server/verify/student_t.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace aerie {
namespace {

// From the usual printed tables.
struct Entry {
  double t, degrees, p;
};
constexpr Entry kTable[] = {{12.706, 1, 0.05},  {63.657, 1, 0.01}, {2.776, 4, 0.05},
                            {4.604, 4, 0.01},   {2.228, 10, 0.05}, {3.169, 10, 0.01},
                            {4.587, 10, 0.001}, {2.750, 30, 0.01}, {1.962, 1000, 0.05}};

TEST(StudentTTest, AgreesWithPrintedTables) {
  for (const Entry& entry : kTable) {
    EXPECT_NEAR(TwoSidedP(entry.t, entry.degrees), entry.p, 0.003 * entry.p) << entry.t;
    EXPECT_NEAR(TwoSidedP(-entry.t, entry.degrees), entry.p, 0.003 * entry.p) << entry.t;
    EXPECT_NEAR(TwoSidedQuantile(entry.p, entry.degrees), entry.t, 0.002 * entry.t) << entry.t;
  }
}

TEST(StudentTTest, HasTheNormalTailsWithManyDegrees) {
  EXPECT_NEAR(TwoSidedP(3.0, 1e6), 0.0026998, 1e-5);
  EXPECT_NEAR(TwoSidedP(6.0, 1e6) / 1.97318e-9, 1.0, 1e-3);
}

TEST(StudentTTest, IsWithoutEvidenceAtZeroAndForNoNumber) {
  EXPECT_DOUBLE_EQ(TwoSidedP(0.0, 7), 1.0);
  EXPECT_DOUBLE_EQ(TwoSidedP(std::nan(""), 7), 1.0);
  EXPECT_DOUBLE_EQ(TwoSidedP(std::numeric_limits<double>::infinity(), 7), 0.0);
}

}  // namespace
}  // namespace aerie
