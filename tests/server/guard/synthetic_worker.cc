#include "tests/server/guard/synthetic_worker.h"

#include <algorithm>

#include "common/check.h"

namespace aerie {
namespace {

constexpr size_t kRowBytes = SyntheticTarget::kHidden * sizeof(float);

}  // namespace

void SyntheticWorker::Rounds(int64_t count) {
  for (int64_t i = 0; i < count; ++i) Round();
}

void SyntheticWorker::Round() {
  const auto left = [this] { return static_cast<int64_t>(tokens_.size()) - 2 - sent_; };
  if (watch_ == nullptr || left() < 3) {
    const uint32_t text = options_.first_text + text_++ % options_.texts;
    tokens_ = SyntheticTarget::Tokens(text, options_.tokens);
    std::vector<std::string> parts;
    for (const Capture& capture : options_.captures) {
      parts.push_back(SyntheticTarget::States(text, tokens_, capture));
    }
    bytes_.clear();
    for (size_t row = 0; row < tokens_.size(); ++row) {
      for (const std::string& part : parts) bytes_.append(part, row * kRowBytes, kRowBytes);
    }
    sent_ = 0;
    watch_.reset();
    watch_ = guard_.Watch(options_.client, "synthetic", absl::UnixEpoch() + absl::Seconds(round_));
  }
  const int64_t rows = std::min(sent_ == 0 ? int64_t{12} : 1 + round_ % 3, left());
  std::vector<int32_t> tokens;
  for (int64_t row = sent_; row < sent_ + rows; ++row) {
    tokens.push_back(tokens_[static_cast<size_t>(row + 1 + options_.token_shift)]);
  }
  const size_t width = kRowBytes * options_.captures.size();
  const std::string bytes =
      bytes_.substr(static_cast<size_t>(sent_) * width, static_cast<size_t>(rows) * width);
  absl::StatusOr<HiddenRows> view =
      HiddenRows::Create(DType::kF32, rows, static_cast<int64_t>(width / sizeof(float)), bytes);
  AERIE_CHECK(view.ok()) << view.status().message();
  watch_->OnRows(sent_, tokens, *view, absl::UnixEpoch() + absl::Seconds(++round_));
  sent_ += rows;
}

WiringReport SyntheticWorker::Report() const {
  for (const WiringReport& report : guard_.Reports()) {
    if (report.client == options_.client) return report;
  }
  AERIE_CHECK(false) << "no report of " << options_.client;
}

}  // namespace aerie
