#include "server/verify/progress_bar.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"

namespace aerie {

ProgressBar::ProgressBar(std::FILE* stream)
    : stream_(stream), on_terminal_(isatty(fileno(stream)) == 1) {}

void ProgressBar::Show(const std::string& stage, int64_t done, int64_t total) {
  if (!on_terminal_) return;
  // To the start of the line, and what stood there is wiped.
  std::fprintf(stream_, "\r\x1b[K%s", ProgressLine(stage, done, total).c_str());
  std::fflush(stream_);
  shown_ = true;
}

void ProgressBar::Clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
  shown_ = false;
}

std::string ProgressLine(const std::string& stage, int64_t done, int64_t total) {
  constexpr int64_t kWidth = 30;
  const int64_t whole = std::max<int64_t>(1, total);
  const int64_t part = std::clamp<int64_t>(done, 0, whole);
  const auto filled = static_cast<size_t>(kWidth * part / whole);
  return absl::StrFormat("[%s%s] %3d %% %s", std::string(filled, '#'),
                         std::string(kWidth - filled, '.'), 100 * part / whole, stage);
}

}  // namespace aerie
