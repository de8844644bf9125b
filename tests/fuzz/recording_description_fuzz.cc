// Any text as the description of a recording: it is refused with complaints, or all of it is in
// range and no file name leads out of the folder.
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/check.h"
#include "server/recording/recording_description.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  aerie::Complaints complaints;
  const auto read = aerie::ReadRecordingDescription(
      absl::string_view(reinterpret_cast<const char*>(data), size), complaints);
  AERIE_CHECK(read.has_value() == complaints.empty());
  if (!read.has_value()) return 0;
  AERIE_CHECK(read->target.hidden_size > 0 && read->target.num_layers >= 0);
  AERIE_CHECK(!read->tensors.empty() && !read->samples.empty());
  for (const aerie::DescribedSample& sample : read->samples) {
    AERIE_CHECK(sample.tokens > 0 && sample.prompt_tokens.value_or(0) <= sample.tokens);
    AERIE_CHECK(sample.file.find('/') == std::string::npos && sample.file[0] != '.');
  }
  return 0;
}
