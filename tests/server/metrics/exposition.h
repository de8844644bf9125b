// Reads the Prometheus text format back, so that tests look at what a scrape would see.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "prometheus/collectable.h"

namespace aerie {

using Labels = std::map<std::string, std::string>;

struct Sample {
  std::string name;
  Labels labels;
  double value = 0;
};

class Exposition {
 public:
  // Fails the test on a line that is neither a comment nor a sample, and on a series that comes
  // twice.
  explicit Exposition(const std::string& text);
  // Of what `metrics` collects now.
  explicit Exposition(const prometheus::Collectable& metrics);

  const std::string& text() const { return text_; }
  const std::vector<Sample>& samples() const { return samples_; }

  // The sum over the series of a name that carry at least `labels`; NaN, which equals nothing, when
  // there is none.
  double Sum(const std::string& name, const Labels& labels = {}) const;
  // How many such series there are.
  int Count(const std::string& name, const Labels& labels = {}) const;
  // Each value of one label, in order of appearance.
  std::vector<std::string> ValuesOf(const std::string& name, const std::string& label) const;
  // HELP text by metric name.
  const std::map<std::string, std::string>& help() const { return help_; }

 private:
  void Parse();

  const std::string text_;
  std::vector<Sample> samples_;
  std::map<std::string, std::string> help_;
};

}  // namespace aerie
