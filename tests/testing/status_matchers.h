// EXPECT_THAT(call, IsOk()); EXPECT_THAT(call, StatusIs(absl::StatusCode::kNotFound)); for Status
// and StatusOr alike.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/error_detail.h"
#include "gmock/gmock.h"

namespace aerie {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

MATCHER_P(StatusIs, code, "has code " + absl::StatusCodeToString(code)) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}

// `message` is a matcher too.
MATCHER_P2(Says, code, message, "has a code and a message") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return status.code() == code && testing::Matches(message)(std::string(status.message()));
}

// A refusal with its stable reason, whose message has the three parts: seen; expected; what to do.
MATCHER_P2(Refuses, code, reason,
           "refuses with " + absl::StatusCodeToString(code) + " and reason " + reason +
               " in a three-part message") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << status.ToString() << ", reason " << DetailOf(status).reason;
  const std::string message(status.message());
  const size_t expected = message.find("; expected ");
  return status.code() == code && DetailOf(status).reason == reason &&
         expected != std::string::npos && message.find("; ", expected + 2) != std::string::npos;
}

}  // namespace aerie
