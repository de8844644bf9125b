// What HdrHistogram's tools get to read. The golden counts were recorded with hdrhistogram 0.10.8
// for Python: HdrHistogram(1, 3600 * 10**9, 3), the values below, encode(), inflated.
#include "client/loadtest/hdr_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"

namespace aerie::loadtest {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kGoldenCounts[] = "010204c90f02ab100202fd0f02fb42d804876002ab4a02bf8e0102";
constexpr size_t kHeaderBytes = 40;

Histogram GoldenHistogram() {
  Histogram histogram;
  for (const int64_t value :
       {1L, 2L, 2L, 1000L, 2047L, 2048L, 4097L, 5'000'000L, 123'456'789L, 60'000'000'000L}) {
    histogram.Record(absl::Nanoseconds(value));
  }
  for (int i = 0; i < 300; ++i) histogram.Record(absl::Nanoseconds(77'777));
  return histogram;
}

uint64_t BigEndian(const std::string& bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

TEST(HdrLogTest, EncodesCountsAsHdrHistogramDoes) {
  const std::string payload = EncodeHdrPayload(GoldenHistogram());
  ASSERT_GE(payload.size(), kHeaderBytes);
  EXPECT_EQ(absl::BytesToHexString(payload.substr(kHeaderBytes)), kGoldenCounts);
  EXPECT_EQ(BigEndian(payload, 0, 4), 0x1c849313u);
  EXPECT_EQ(BigEndian(payload, 4, 4), payload.size() - kHeaderBytes);
  EXPECT_EQ(BigEndian(payload, 12, 4), 3u) << "significant digits";
  EXPECT_EQ(BigEndian(payload, 16, 8), 1u) << "lowest value";
  EXPECT_GE(BigEndian(payload, 24, 8), 60'000'000'000u) << "room for the highest";
}

TEST(HdrLogTest, TheTextIsThePayloadDeflated) {
  const std::string text = EncodeHdr(GoldenHistogram());
  EXPECT_THAT(text, StartsWith("HISTFAAAA"));
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(text, &bytes));
  EXPECT_EQ(BigEndian(bytes, 0, 4), 0x1c849314u);
  ASSERT_EQ(BigEndian(bytes, 4, 4), bytes.size() - 8);
  std::string payload(1000, '\0');
  uLongf size = payload.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(payload.data()), &size,
                       reinterpret_cast<const Bytef*>(bytes.data()) + 8, bytes.size() - 8),
            Z_OK);
  payload.resize(size);
  EXPECT_EQ(payload, EncodeHdrPayload(GoldenHistogram()));
}

TEST(HdrLogTest, AnEmptyHistogramHasNoCounts) {
  const std::string payload = EncodeHdrPayload(Histogram());
  EXPECT_EQ(payload.size(), kHeaderBytes);
  EXPECT_GE(BigEndian(payload, 24, 8), 2u) << "readers refuse less than twice the lowest value";
}

TEST(HdrLogTest, WritesLinesThatToolsRead) {
  HdrLog log(absl::FromUnixMillis(1'800'000'000'123));
  Histogram histogram;
  histogram.Record(absl::Microseconds(2500));
  log.Add("round", absl::Seconds(3), absl::Milliseconds(1001), histogram);
  const std::vector<std::string> lines = absl::StrSplit(log.text(), '\n');
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[1], "#[Histogram log format version 1.3]");
  EXPECT_THAT(lines[2], StartsWith("#[StartTime: 1800000000.123 (seconds since epoch)"));
  EXPECT_THAT(lines[3], StartsWith("\"StartTimestamp\",\"Interval_Length\""));
  EXPECT_THAT(lines[4], StartsWith("Tag=round,3.000,1.001,2.500,HISTFAAAA"));
}

}  // namespace
}  // namespace aerie::loadtest
