// The flags of a load, which a run and each point of a sweep share.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/loadtest/flags.h"
#include "client/loadtest/options.h"

namespace aerie::loadtest {

// Reads a load's flags into options. One command line.
class LoadFlags {
 public:
  explicit LoadFlags(CLI::App* app);

  // After app.parse(): INVALID_ARGUMENT that names flag, value and remedy. `rate_elsewhere`: the
  // rate comes from another flag than --rate.
  absl::Status Read(LoadOptions* options, bool rate_elsewhere = false);

 private:
  void AddConnection();
  void AddLoad();
  void AddSession();
  void AddFaultsAndLimits();
  void AddReports();
  absl::Status ReadTexts();
  absl::Status CheckContradictions(bool rate_elsewhere) const;

  CLI::App& app_;
  LoadOptions o_;
  // Of flags whose values CLI11 cannot read by itself: the text, by flag.
  std::map<std::string, std::string> texts_;
  std::vector<std::string> slo_;
};

absl::Status ParseTime(absl::string_view flag, const std::string& text, absl::Duration* out);

// Runs `app` on the arguments and then `read`, which may fail; turns help, version and errors into
// an ending.
Ending ParseInto(CLI::App& app, int argc, const char* const* argv,
                 const std::function<absl::Status()>& read);

}  // namespace aerie::loadtest
