// The command lines of aerie-load: load, sweep, compare and null-server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/loadtest/options.h"
#include "client/loadtest/sweep.h"

namespace aerie::loadtest {

// Set when the program is done at once: help or version (0), or bad usage (2); `text` says it.
struct Ending {
  std::optional<int> exit_code;
  std::string text;
};

struct CommandLine {
  LoadOptions options;
  Ending ending;
};

struct SweepLine {
  LoadOptions options;  // of each point
  SweepOptions sweep;
  Ending ending;
};

struct CompareLine {
  std::string before, after;  // paths of JSON reports
  double tolerance = 0.05;    // share by which a figure may get worse
  bool json = false;
  Ending ending;
};

struct NullServerLine {
  std::string listen = "127.0.0.1:0";
  int32_t hidden_size = 64, captures = 3, vocab_size = 32000, max_k = 32;
  std::string port_file;  // empty: none
  Ending ending;
};

CommandLine ParseCommandLine(int argc, const char* const* argv);
// argv[0] is the word behind the program's name.
SweepLine ParseSweep(int argc, const char* const* argv);
CompareLine ParseCompare(int argc, const char* const* argv);
NullServerLine ParseNullServer(int argc, const char* const* argv);

}  // namespace aerie::loadtest
