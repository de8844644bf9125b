#include "client/loadtest/hdr_log.h"

#include <zlib.h>

#include <bit>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "aerie_version.h"
#include "common/check.h"

namespace aerie::loadtest {
namespace {

constexpr uint32_t kPlainCookie = 0x1c849313, kCompressedCookie = 0x1c849314;
constexpr uint32_t kSignificantDigits = 3;

template <typename Word>
void AppendBigEndian(Word value, std::string* out) {
  for (int shift = 8 * (static_cast<int>(sizeof(Word)) - 1); shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(value >> shift & 0xff));
  }
}

// Seven bits a byte, lowest first; a ninth byte has eight, so that none is longer.
void AppendZigZag(int64_t value, std::string* out) {
  uint64_t bits = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  for (int byte = 0; byte < 8 && bits >= 0x80; ++byte) {
    out->push_back(static_cast<char>((bits & 0x7f) | 0x80));
    bits >>= 7;
  }
  out->push_back(static_cast<char>(bits));
}

// Counts up to the last one that is not 0; a run of n zeros is -n.
std::string Counts(const Histogram& histogram) {
  std::string out;
  int64_t zeros = 0;
  for (const int64_t count : histogram.buckets()) {
    if (count == 0) {
      ++zeros;
      continue;
    }
    if (zeros > 0) AppendZigZag(-zeros, &out);
    zeros = 0;
    AppendZigZag(count, &out);
  }
  return out;
}

}  // namespace

std::string EncodeHdrPayload(const Histogram& histogram) {
  const std::string counts = Counts(histogram);
  std::string out;
  AppendBigEndian(kPlainCookie, &out);
  AppendBigEndian(static_cast<uint32_t>(counts.size()), &out);
  AppendBigEndian(uint32_t{0}, &out);  // no shift of the counts
  AppendBigEndian(kSignificantDigits, &out);
  AppendBigEndian(uint64_t{1}, &out);  // lowest value told apart
  // Readers make room for values up to here; it must be at least twice the lowest.
  const auto most = static_cast<uint64_t>(absl::ToInt64Nanoseconds(histogram.max()));
  AppendBigEndian(std::bit_ceil(most + 2), &out);
  AppendBigEndian(std::bit_cast<uint64_t>(1.0), &out);  // units a count
  return out + counts;
}

std::string EncodeHdr(const Histogram& histogram) {
  const std::string payload = EncodeHdrPayload(histogram);
  uLongf size = compressBound(payload.size());
  std::string deflated(size, '\0');
  const int result = compress(reinterpret_cast<Bytef*>(deflated.data()), &size,
                              reinterpret_cast<const Bytef*>(payload.data()), payload.size());
  AERIE_CHECK(result == Z_OK) << "zlib failed with " << result;
  std::string out;
  AppendBigEndian(kCompressedCookie, &out);
  AppendBigEndian(static_cast<uint32_t>(size), &out);
  out.append(deflated, 0, size);
  return absl::Base64Escape(out);
}

HdrLog::HdrLog(absl::Time start)
    : text_(absl::StrFormat(
          "#[aerie-load %s, values in nanoseconds]\n#[Histogram log format version 1.3]\n"
          "#[StartTime: %.3f (seconds since epoch), %s]\n"
          "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\","
          "\"Interval_Compressed_Histogram\"\n",
          kVersion, absl::ToDoubleSeconds(start - absl::UnixEpoch()),
          absl::FormatTime(absl::RFC3339_sec, start, absl::UTCTimeZone()))) {}

void HdrLog::Add(absl::string_view tag, absl::Duration begin, absl::Duration length,
                 const Histogram& histogram) {
  // The largest value is told in milliseconds, as the format's own tools expect of nanoseconds.
  absl::StrAppendFormat(&text_, "Tag=%s,%.3f,%.3f,%.3f,%s\n", tag, absl::ToDoubleSeconds(begin),
                        absl::ToDoubleSeconds(length), absl::ToDoubleMilliseconds(histogram.max()),
                        EncodeHdr(histogram));
}

}  // namespace aerie::loadtest
