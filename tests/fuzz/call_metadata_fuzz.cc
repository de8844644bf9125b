// Any text as what travels in metadata beside a call: a traceparent is read or is none, and what is
// read is written as others read it.
#include <cstdint>
#include <string>
#include <string_view>

#include "common/check.h"
#include "common/trace_context.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view header(reinterpret_cast<const char*>(data), size);
  const auto trace = aerie::ParseTraceParent(header);
  if (!trace.has_value()) return 0;
  constexpr char kHex[] = "0123456789abcdef";
  AERIE_CHECK(trace->trace_id.size() == 32 && trace->parent_id.size() == 16);
  for (const std::string* id : {&trace->trace_id, &trace->parent_id}) {
    AERIE_CHECK(id->find_first_not_of(kHex) == std::string::npos) << *id;
    AERIE_CHECK(id->find_first_not_of('0') != std::string::npos) << *id;
    AERIE_CHECK(header.find(*id) != std::string_view::npos);
  }
  const std::string written = aerie::ToTraceParent(*trace);
  AERIE_CHECK(written.size() == 55) << written;
  AERIE_CHECK(aerie::ParseTraceParent(written) == trace) << written;
  // Of the version that this one is, no letter is left out.
  const bool ours = header.substr(0, 2) == "00";
  AERIE_CHECK(!ours || header.substr(0, 53) == written.substr(0, 53)) << written;
  return 0;
}
