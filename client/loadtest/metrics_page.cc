#include "client/loadtest/metrics_page.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace aerie::loadtest {

absl::StatusOr<MetricsPage> MetricsPage::Parse(absl::string_view text) {
  MetricsPage page;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    if (line[0] == '#') continue;
    // A label's value may hold spaces and braces; behind the last brace none does.
    const size_t open = line.find('{');
    const size_t close = line.rfind('}');
    const bool labelled = open != absl::string_view::npos && close != absl::string_view::npos;
    const size_t name_end = labelled ? open : line.find(' ');
    const size_t value_begin = labelled ? close + 1 : name_end;
    double value = 0;
    // A time may stand behind the value.
    const std::vector<absl::string_view> rest = absl::StrSplit(
        value_begin < line.size() ? line.substr(value_begin) : "", ' ', absl::SkipWhitespace());
    if (rest.empty() || name_end == 0 || !absl::SimpleAtod(rest[0], &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the line '", line.substr(0, 80), "' is no number with a name"));
    }
    const absl::string_view labels =
        labelled ? line.substr(open + 1, close - open - 1) : absl::string_view();
    page.series_[std::string(line.data(), name_end)].emplace_back(
        std::string(labels.data(), labels.size()), value);
  }
  return page;
}

std::optional<double> MetricsPage::Sum(const std::string& name, absl::string_view label) const {
  const auto found = series_.find(name);
  if (found == series_.end()) return std::nullopt;
  std::optional<double> sum;
  for (const auto& [labels, value] : found->second) {
    const size_t at = labels.find(std::string(label.data(), label.size()));
    // A label's name begins the list or follows a comma: position is no part of a longer name.
    if (at == std::string::npos || (at > 0 && !label.empty() && labels[at - 1] != ',')) continue;
    sum = sum.value_or(0) + value;
  }
  return sum;
}

}  // namespace aerie::loadtest
