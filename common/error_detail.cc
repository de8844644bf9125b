#include "common/error_detail.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/check.h"

namespace aerie {
namespace {

constexpr char kReasonUrl[] = "aerie/reason";
constexpr char kResendFromUrl[] = "aerie/resend_from";
constexpr char kRetryAfterUrl[] = "aerie/retry_after_ns";
constexpr char kMismatchesUrl[] = "aerie/mismatches";

std::string PayloadOf(const absl::Status& status, const char* url) {
  const auto payload = status.GetPayload(url);
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace

absl::Status WithDetail(absl::Status status, const ErrorDetail& detail) {
  AERIE_CHECK(!status.ok()) << "only a failure has a detail";
  if (!detail.reason.empty()) status.SetPayload(kReasonUrl, absl::Cord(detail.reason));
  if (detail.resend_from) {
    status.SetPayload(kResendFromUrl, absl::Cord(absl::StrCat(*detail.resend_from)));
  }
  if (detail.retry_after) {
    status.SetPayload(kRetryAfterUrl,
                      absl::Cord(absl::StrCat(absl::ToInt64Nanoseconds(*detail.retry_after))));
  }
  if (!detail.mismatches.empty()) {
    // Lines of three tab-separated columns; the texts are escaped, so they hold neither.
    std::string lines;
    for (const FieldMismatch& m : detail.mismatches) {
      absl::StrAppend(&lines, lines.empty() ? "" : "\n", absl::CEscape(m.field), "\t",
                      absl::CEscape(m.expected), "\t", absl::CEscape(m.received));
    }
    status.SetPayload(kMismatchesUrl, absl::Cord(lines));
  }
  return status;
}

absl::Status WithReason(absl::Status status, std::string reason) {
  ErrorDetail detail;
  detail.reason = std::move(reason);
  return WithDetail(std::move(status), detail);
}

ErrorDetail DetailOf(const absl::Status& status) {
  ErrorDetail detail;
  detail.reason = PayloadOf(status, kReasonUrl);
  int64_t number = 0;
  if (absl::SimpleAtoi(PayloadOf(status, kResendFromUrl), &number)) detail.resend_from = number;
  if (absl::SimpleAtoi(PayloadOf(status, kRetryAfterUrl), &number)) {
    detail.retry_after = absl::Nanoseconds(number);
  }
  const std::string lines = PayloadOf(status, kMismatchesUrl);
  if (lines.empty()) return detail;
  for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
    const std::vector<std::string> columns = absl::StrSplit(line, '\t');
    AERIE_CHECK(columns.size() == 3) << line;
    FieldMismatch mismatch;
    AERIE_CHECK(absl::CUnescape(columns[0], &mismatch.field));
    AERIE_CHECK(absl::CUnescape(columns[1], &mismatch.expected));
    AERIE_CHECK(absl::CUnescape(columns[2], &mismatch.received));
    detail.mismatches.push_back(std::move(mismatch));
  }
  return detail;
}

}  // namespace aerie
