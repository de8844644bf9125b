#include "tests/fuzz/call_script.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/honest_worker.h"
#include "tests/fuzz/message_mutator.h"

namespace aerie {
namespace {

constexpr char kWorker[] = "worker ";
constexpr size_t kMostFrameBytes = 0xffff;

void ChangeFrame(std::string* frame, std::mt19937_64* random) {
  v1::DraftStreamRequest message;
  if (!message.ParseFromString(*frame)) return Damage(frame, random);
  MutateMessage(&message, random);
  *frame = message.SerializeAsString();
}

void ChangeFrames(std::vector<std::string>* frames, std::mt19937_64* random) {
  if (frames->empty()) return frames->push_back("");
  const size_t at = Below(frames->size(), random), other = Below(frames->size(), random);
  const auto place = frames->begin() + static_cast<std::ptrdiff_t>(at);
  switch (Below(12, random)) {
    case 0:
      frames->erase(place);
      return;
    case 1:
      frames->insert(place, std::string((*frames)[other]));
      return;
    case 2:
      std::swap((*frames)[at], (*frames)[other]);
      return;
    default:
      ChangeFrame(&(*frames)[at], random);
  }
}

void NameSession(const std::vector<std::string>& ids, std::string* id) {
  uint32_t number = 0;
  if (id->empty() || (*id)[0] != '@' ||
      !absl::SimpleAtoi(absl::string_view(*id).substr(1), &number) || number >= ids.size()) {
    return;
  }
  *id = ids[number];
}

}  // namespace

CallScript ReadScript(std::string_view bytes) {
  if (bytes.substr(0, sizeof(kWorker) - 1) == kWorker) {
    std::string_view kind = bytes.substr(sizeof(kWorker) - 1);
    while (!kind.empty() && kind.back() == '\n') kind.remove_suffix(1);
    return HonestWorker(kind);
  }
  CallScript script;
  if (bytes.empty()) return script;
  script.settings = static_cast<uint8_t>(bytes[0]);
  bytes.remove_prefix(1);
  while (bytes.size() >= 2) {
    const size_t length = static_cast<uint8_t>(bytes[0]) | size_t{static_cast<uint8_t>(bytes[1])}
                                                               << 8;
    script.frames.emplace_back(bytes.substr(2, length));
    bytes.remove_prefix(std::min(bytes.size(), 2 + length));
  }
  return script;
}

std::string WriteScript(const CallScript& script) {
  std::string out(1, static_cast<char>(script.settings));
  for (const std::string& frame : script.frames) {
    const size_t length = std::min(frame.size(), kMostFrameBytes);
    out.push_back(static_cast<char>(length));
    out.push_back(static_cast<char>(length >> 8));
    out.append(frame, 0, length);
  }
  return out;
}

size_t MutateScript(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937_64 random(seed);
  CallScript script = ReadScript(std::string_view(reinterpret_cast<const char*>(data), size));
  if (Below(40, &random) == 0) {
    script.settings = static_cast<uint8_t>(Below(256, &random));
  } else {
    ChangeFrames(&script.frames, &random);
  }
  std::string bytes = WriteScript(script);
  bytes.resize(std::min(bytes.size(), max_size));
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

void NameSessions(const std::vector<std::string>& ids, v1::DraftStreamRequest* message) {
  switch (message->request_case()) {
    case v1::DraftStreamRequest::kOpenSession:
      if (!message->open_session().has_fork()) return;
      return NameSession(ids,
                         message->mutable_open_session()->mutable_fork()->mutable_session_id());
    case v1::DraftStreamRequest::kDraft:
      if (message->draft().sequence_case() != v1::DraftRequest::kSessionId) return;
      return NameSession(ids, message->mutable_draft()->mutable_session_id());
    case v1::DraftStreamRequest::kCloseSession:
      return NameSession(ids, message->mutable_close_session()->mutable_session_id());
    case v1::DraftStreamRequest::kBatch:
      for (v1::DraftStreamRequest& each : *message->mutable_batch()->mutable_requests()) {
        NameSessions(ids, &each);
      }
      return;
    case v1::DraftStreamRequest::REQUEST_NOT_SET:
      return;
  }
}

}  // namespace aerie
