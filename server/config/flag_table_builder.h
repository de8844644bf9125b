// Puts the table of flags together, topic by topic. Only for the files that make it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/status_macros.h"
#include "server/config/flag_readers.h"
#include "server/config/flag_table.h"

namespace aerie {

// A `set` that reads one text with `read` into the field that `at` gives.
template <typename Read, typename At>
auto Into(std::string flag, Read read, At at) {
  return [flag = std::move(flag), read, at](const std::vector<std::string>& texts,
                                            Options* options) -> absl::Status {
    AERIE_ASSIGN_OR_RETURN(at(*options), read(flag, texts.front()));
    return absl::OkStatus();
  };
}

class TableBuilder {
 public:
  void Group(std::string group) { group_ = std::move(group); }

  template <typename Read, typename At>
  void Add(const char* name, const char* value, const char* help, std::string default_text,
           Read read, At at) {
    flags_.push_back(
        {name, group_, value, help, std::move(default_text), false, false, Into(name, read, at)});
  }

  template <typename At>
  void Int(const char* name, const char* help, At at) {
    Add(name, "N", help, absl::StrCat(at(defaults_)), ReadInt, at);
  }
  template <typename At>
  void Time(const char* name, const char* help, At at) {
    Add(name, "TIME", help, absl::FormatDuration(at(defaults_)), ReadDuration, at);
  }
  template <typename At>
  void Text(const char* name, const char* value, const char* help, At at) {
    Add(name, value, help, at(defaults_), ReadText, at);
  }
  void Raw(Flag flag) {
    flag.group = group_;
    flags_.push_back(std::move(flag));
  }

  Options& defaults() { return defaults_; }
  std::vector<Flag> Take() { return std::move(flags_); }

 private:
  Options defaults_;
  std::string group_;
  std::vector<Flag> flags_;
};

// client_flags.cc
void AddClientFlags(TableBuilder& table);
// security_flags.cc
void AddSecurityFlags(TableBuilder& table);
// shared_memory_flags.cc
void AddSharedMemoryFlags(TableBuilder& table);

}  // namespace aerie
