// Hidden states of a real target (record_captures.py), and a worker that sends them: as declared,
// or from other places, or with tokens that do not belong to them.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/hidden_rows.h"
#include "common/safetensors/safetensors.h"
#include "common/wiring.h"
#include "server/guard/guard_profile.h"
#include "server/guard/wiring_guard.h"

namespace aerie {

struct LiveText {
  std::string kind;
  int64_t first = 0;        // position of the first row
  int64_t prompt_rows = 0;  // rows that the first call brings
  std::vector<int32_t> tokens;
  std::vector<Capture> captures;
  std::vector<HiddenRows> rows;  // of each capture, [tokens, hidden]
};

class LiveCaptures {
 public:
  // From `folder`, which record_captures.py has filled.
  static absl::StatusOr<LiveCaptures> Load(const std::string& folder);

  const std::vector<LiveText>& texts() const { return texts_; }
  int32_t hidden_size() const { return hidden_size_; }
  std::vector<std::string> Kinds() const;  // without the evaluation's

  // From the evaluation's texts, `sequences` of them.
  absl::StatusOr<GuardProfile> MakeProfile(const Wiring& declared, size_t sequences,
                                           const std::vector<Capture>& recorded = {}) const;

 private:
  LiveCaptures() = default;
  std::vector<SafetensorsFile> files_;
  std::vector<LiveText> texts_;
  int32_t hidden_size_ = 0;
};

// What a worker sends where rows of the wiring are wanted.
struct Sending {
  std::vector<Capture> captures;
  // Row p brings the token of position p + 1 + shift; 0 is right.
  int32_t token_shift = 0;
};

// Sends text after text, in an order of its own. Each call is one round of 1 to 4 rows, but for the
// prompt that a session begins with.
class LiveWorker {
 public:
  // Texts of `kind`, or of all kinds but the evaluation's when it is empty.
  LiveWorker(const LiveCaptures& captures, Sending sending, std::string kind, uint32_t seed,
             std::string client = "worker");
  ~LiveWorker();

  void Round(WiringGuard& guard, absl::Time now);

 private:
  void NextText(WiringGuard& guard, absl::Time now);
  std::string RowBytes(int64_t first, int64_t count) const;

  const LiveCaptures& captures_;
  Sending sending_;
  std::string kind_, client_;
  std::mt19937 random_;
  std::vector<const LiveText*> texts_;
  const LiveText* text_ = nullptr;
  int64_t sent_ = 0;  // rows of text_
  std::unique_ptr<SessionWatch> watch_;
};

}  // namespace aerie
