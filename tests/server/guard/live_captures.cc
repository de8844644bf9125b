#include "tests/server/guard/live_captures.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "server/guard/guard_profile_builder.h"

namespace aerie {
namespace {

Capture CaptureOf(int32_t number) {
  return number < 0 ? Capture::FinalNorm() : Capture::Boundary(number);
}

const HiddenRows& RowsOf(const LiveText& text, const Capture& capture) {
  const auto found = std::find(text.captures.begin(), text.captures.end(), capture);
  AERIE_CHECK(found != text.captures.end()) << capture.ToString() << " is not in the captures";
  return text.rows[static_cast<size_t>(found - text.captures.begin())];
}

}  // namespace

absl::StatusOr<LiveCaptures> LiveCaptures::Load(const std::string& folder) {
  absl::StatusOr<SafetensorsFile> file =
      SafetensorsFile::Open(absl::StrCat(folder, "/captures.safetensors"));
  if (!file.ok()) return file.status();
  std::ifstream stream(folder + "/captures.json");
  const nlohmann::json notes = nlohmann::json::parse(stream);
  LiveCaptures captures;
  captures.hidden_size_ = notes["hidden_size"];
  int64_t index = 0;
  for (const auto& note : notes["texts"]) {
    LiveText text{.kind = note["kind"], .first = note["first"], .prompt_rows = note["prompt_rows"]};
    for (const int32_t number : note["captures"]) text.captures.push_back(CaptureOf(number));
    const auto tensor = [&](absl::string_view name) {
      return file->Find(absl::StrCat(index, ".", name));
    };
    const TensorSpan* tokens = tensor("tokens");
    const TensorSpan* hidden = tensor("hidden");
    AERIE_CHECK(tokens != nullptr && hidden != nullptr) << "text " << index;
    text.tokens.resize(tokens->bytes.size() / sizeof(int32_t));
    std::memcpy(text.tokens.data(), tokens->bytes.data(), tokens->bytes.size());
    const size_t part = hidden->bytes.size() / text.captures.size();
    for (size_t c = 0; c < text.captures.size(); ++c) {
      absl::StatusOr<HiddenRows> rows =
          HiddenRows::Create(DType::kBF16, static_cast<int64_t>(text.tokens.size()),
                             captures.hidden_size_, hidden->bytes.substr(c * part, part));
      if (!rows.ok()) return rows.status();
      text.rows.push_back(*rows);
    }
    captures.texts_.push_back(std::move(text));
    ++index;
  }
  captures.files_.push_back(*std::move(file));
  return captures;
}

std::vector<std::string> LiveCaptures::Kinds() const {
  std::set<std::string> kinds;
  for (const LiveText& text : texts_) kinds.insert(text.kind);
  kinds.erase("evaluation");
  return {kinds.begin(), kinds.end()};
}

absl::StatusOr<GuardProfile> LiveCaptures::MakeProfile(const Wiring& declared, size_t sequences,
                                                       const std::vector<Capture>& recorded) const {
  std::vector<RecordedRows> chosen;
  const std::vector<Capture>& captures = recorded.empty() ? texts_.front().captures : recorded;
  for (const LiveText& text : texts_) {
    if (text.kind != "evaluation" || chosen.size() == sequences) continue;
    RecordedRows rows;
    for (const Capture& capture : captures) rows.push_back(RowsOf(text, capture));
    chosen.push_back(std::move(rows));
  }
  return BuildGuardProfile(declared, captures, chosen);
}

LiveWorker::LiveWorker(const LiveCaptures& captures, Sending sending, std::string kind,
                       uint32_t seed, std::string client)
    : captures_(captures),
      sending_(std::move(sending)),
      kind_(std::move(kind)),
      client_(std::move(client)),
      random_(seed) {}

LiveWorker::~LiveWorker() = default;

void LiveWorker::NextText(WiringGuard& guard, absl::Time now) {
  if (texts_.empty()) {
    for (const LiveText& text : captures_.texts()) {
      if (kind_.empty() ? text.kind != "evaluation" : text.kind == kind_) texts_.push_back(&text);
    }
    AERIE_CHECK(!texts_.empty()) << "no texts of kind " << kind_;
    // Not std::shuffle: its order differs between standard libraries.
    for (size_t i = texts_.size(); i-- > 1;) std::swap(texts_[i], texts_[random_() % (i + 1)]);
  }
  text_ = texts_.back();
  texts_.pop_back();
  sent_ = 0;
  watch_ = guard.Watch(client_, "SmolLM2-135M-Instruct", now);
}

std::string LiveWorker::RowBytes(int64_t first, int64_t count) const {
  std::string bytes;
  for (int64_t row = first; row < first + count; ++row) {
    for (const Capture& capture : sending_.captures) {
      bytes.append(RowsOf(*text_, capture).Slice(row, 1).bytes());
    }
  }
  return bytes;
}

void LiveWorker::Round(WiringGuard& guard, absl::Time now) {
  const auto left = [this] {
    return text_ == nullptr ? 0 : static_cast<int64_t>(text_->tokens.size()) - 2 - sent_;
  };
  if (left() < 4) NextText(guard, now);
  int64_t count = text_->prompt_rows;
  if (sent_ > 0) {
    // Three of five drafts fail at once, as with the demo's head.
    const uint32_t draw = random_() % 100;
    count = draw < 62 ? 1 : draw < 86 ? 2 : draw < 96 ? 3 : 4;
  }
  count = std::min(count, left());
  std::vector<int32_t> tokens;
  for (int64_t row = sent_; row < sent_ + count; ++row) {
    tokens.push_back(text_->tokens[static_cast<size_t>(row + 1 + sending_.token_shift)]);
  }
  const std::string bytes = RowBytes(sent_, count);
  const auto width = captures_.hidden_size() * static_cast<int64_t>(sending_.captures.size());
  absl::StatusOr<HiddenRows> rows = HiddenRows::Create(DType::kBF16, count, width, bytes);
  AERIE_CHECK(rows.ok()) << rows.status().message();
  watch_->OnRows(text_->first + sent_, tokens, *rows, now);
  sent_ += count;
}

}  // namespace aerie
