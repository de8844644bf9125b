#include "tests/server/metrics/exposition.h"

#include <limits>
#include <set>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"

namespace aerie {
namespace {

// Reads `{name="value",...}` at `at`, which is moved behind it.
bool ParseLabels(const std::string& line, size_t& at, Labels& labels) {
  if (line[at] != '{') return true;
  ++at;
  while (at < line.size() && line[at] != '}') {
    const size_t equals = line.find("=\"", at);
    if (equals == std::string::npos) return false;
    const std::string name = line.substr(at, equals - at);
    std::string value;
    for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
      if (line[at] == '\\' && ++at < line.size()) {
        value += line[at] == 'n' ? '\n' : line[at];
      } else {
        value += line[at];
      }
    }
    if (!labels.emplace(name, value).second) return false;
    ++at;
    if (at < line.size() && line[at] == ',') ++at;
  }
  ++at;
  return at < line.size();
}

bool Carries(const Sample& sample, const std::string& name, const Labels& labels) {
  if (sample.name != name) return false;
  for (const auto& [label, value] : labels) {
    const auto found = sample.labels.find(label);
    if (found == sample.labels.end() || found->second != value) return false;
  }
  return true;
}

}  // namespace

Exposition::Exposition(const std::string& text) : text_(text) { Parse(); }

Exposition::Exposition(const prometheus::Collectable& metrics)
    : text_(prometheus::TextSerializer().Serialize(metrics.Collect())) {
  Parse();
}

void Exposition::Parse() {
  std::set<std::pair<std::string, Labels>> seen;
  std::istringstream lines(text_);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# HELP ", 0) == 0) {
      const size_t space = line.find(' ', 7);
      help_[line.substr(7, space - 7)] = line.substr(space + 1);
      continue;
    }
    if (line.empty() || line[0] == '#') continue;
    Sample sample;
    size_t at = line.find_first_of("{ ");
    sample.name = line.substr(0, at);
    const bool parsed = at != std::string::npos && ParseLabels(line, at, sample.labels) &&
                        absl::SimpleAtod(line.substr(at + 1), &sample.value);
    EXPECT_TRUE(parsed) << "no sample: " << line;
    EXPECT_TRUE(seen.emplace(sample.name, sample.labels).second) << "comes twice: " << line;
    samples_.push_back(std::move(sample));
  }
}

double Exposition::Sum(const std::string& name, const Labels& labels) const {
  double sum = 0;
  bool found = false;
  for (const Sample& sample : samples_) {
    if (!Carries(sample, name, labels)) continue;
    sum += sample.value;
    found = true;
  }
  return found ? sum : std::numeric_limits<double>::quiet_NaN();
}

int Exposition::Count(const std::string& name, const Labels& labels) const {
  int count = 0;
  for (const Sample& sample : samples_) count += Carries(sample, name, labels) ? 1 : 0;
  return count;
}

std::vector<std::string> Exposition::ValuesOf(const std::string& name,
                                              const std::string& label) const {
  std::vector<std::string> values;
  for (const Sample& sample : samples_) {
    if (sample.name == name) values.push_back(sample.labels.at(label));
  }
  return values;
}

}  // namespace aerie
