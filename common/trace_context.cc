#include "common/trace_context.h"

namespace aerie {
namespace {

// 00-<trace id>-<parent id>-<flags>
constexpr size_t kTraceAt = 3, kTraceDigits = 32;
constexpr size_t kParentAt = kTraceAt + kTraceDigits + 1, kParentDigits = 16;
constexpr size_t kFlagsAt = kParentAt + kParentDigits + 1;
constexpr size_t kLength = kFlagsAt + 2;
// Of a later version, which may go on. Longer headers are not looked at.
constexpr size_t kMostBytes = 512;

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsZero(std::string_view text) { return text.find_first_not_of('0') == std::string_view::npos; }

int DigitOf(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

}  // namespace

std::optional<TraceContext> ParseTraceParent(std::string_view header) {
  if (header.size() < kLength || header.size() > kMostBytes) return std::nullopt;
  const std::string_view version = header.substr(0, 2);
  if (!IsHex(version) || version == "ff") return std::nullopt;
  const bool ends = header.size() == kLength;
  if (!ends && (version == "00" || header[kLength] != '-')) return std::nullopt;
  if (header[kTraceAt - 1] != '-' || header[kParentAt - 1] != '-' || header[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  const std::string_view trace = header.substr(kTraceAt, kTraceDigits);
  const std::string_view parent = header.substr(kParentAt, kParentDigits);
  const std::string_view flags = header.substr(kFlagsAt, 2);
  if (!IsHex(trace) || !IsHex(parent) || !IsHex(flags)) return std::nullopt;
  if (IsZero(trace) || IsZero(parent)) return std::nullopt;
  return TraceContext{.trace_id = std::string(trace),
                      .parent_id = std::string(parent),
                      .sampled = (DigitOf(flags[1]) & 1) != 0};
}

std::string ToTraceParent(const TraceContext& trace) {
  return "00-" + trace.trace_id + "-" + trace.parent_id + (trace.sampled ? "-01" : "-00");
}

}  // namespace aerie
