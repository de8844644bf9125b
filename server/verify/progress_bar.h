// A progress bar on a terminal; nothing where the output goes elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace aerie {

class ProgressBar {
 public:
  // `stream`: stderr, as a rule. It must outlive the bar.
  explicit ProgressBar(std::FILE* stream);
  ~ProgressBar() { Clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(const std::string& stage, int64_t done, int64_t total);
  void Clear();

 private:
  std::FILE* const stream_;
  const bool on_terminal_;
  bool shown_ = false;
};

// "[#####.....]  50 % all candidates, on 512 rows".
std::string ProgressLine(const std::string& stage, int64_t done, int64_t total);

}  // namespace aerie
