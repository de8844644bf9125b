// Which trace of the caller's a call belongs to: the W3C header `traceparent`.
//
// A header that cannot be read is no error of the call: by the standard whoever receives it goes on
// without. So there is no Status here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace aerie {

// Also the name of the gRPC metadata; lower case, as metadata has to be.
inline constexpr char kTraceParent[] = "traceparent";

struct TraceContext {
  std::string trace_id;   // 32 hexadecimal digits, lower case, not all 0
  std::string parent_id;  // 16: the caller's span
  bool sampled = false;

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

// Empty when `header` is no traceparent. Of versions above 00 the part that this one knows is read.
std::optional<TraceContext> ParseTraceParent(std::string_view header);

// As version 00.
std::string ToTraceParent(const TraceContext& trace);

}  // namespace aerie
