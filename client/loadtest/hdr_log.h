// Histograms in the form that HdrHistogram's tools read: its V2 encoding and log format 1.3.
//
// Our buckets are those of an HdrHistogram with 3 significant digits and a lowest value of 1, so
// counts go over one by one; values are nanoseconds.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/loadtest/histogram.h"

namespace aerie::loadtest {

// The V2 payload, neither compressed nor armoured.
std::string EncodeHdrPayload(const Histogram& histogram);
// The same as text: deflated, in base64.
std::string EncodeHdr(const Histogram& histogram);

// Grows line by line.
class HdrLog {
 public:
  explicit HdrLog(absl::Time start);
  // `tag` has neither comma nor space. `begin` is from the start of the run.
  void Add(absl::string_view tag, absl::Duration begin, absl::Duration length,
           const Histogram& histogram);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace aerie::loadtest
