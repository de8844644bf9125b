// A server's metrics page: the numbers in Prometheus' text format, as one scrape found them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace aerie::loadtest {

// Immutable.
class MetricsPage {
 public:
  // INVALID_ARGUMENT: a line that is neither a comment nor a number with a name.
  static absl::StatusOr<MetricsPage> Parse(absl::string_view text);

  // The sum over the series of `name` that carry `label` (written as on the page, position="3", or
  // empty for all). Empty when there is none.
  std::optional<double> Sum(const std::string& name, absl::string_view label = "") const;

 private:
  // By name: labels and value.
  std::map<std::string, std::vector<std::pair<std::string, double>>> series_;
};

}  // namespace aerie::loadtest
