// A worker that serves text after text of the synthetic target, as declared or not.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/wiring.h"
#include "server/guard/wiring_guard.h"
#include "tests/server/guard/synthetic_target.h"

namespace aerie {

class SyntheticWorker {
 public:
  struct Options {
    std::string client = "worker";
    uint32_t first_text = 100;  // texts of the profile are below it
    uint32_t texts = 1000;      // then again from the first
    int64_t tokens = 80;        // of a text
    std::vector<Capture> captures = SyntheticTarget::Declared().captures();  // as really taken
    int32_t token_shift = 0;  // row p brings the token of position p + 1 + shift
  };
  SyntheticWorker(WiringGuard& guard, Options options) : guard_(guard), options_(options) {}

  // Calls that bring one to three rows; the first of a text brings twelve.
  void Rounds(int64_t count);
  // From the next text on.
  void SendFrom(std::vector<Capture> captures) { options_.captures = std::move(captures); }
  // Ends the text.
  void Close() { watch_.reset(); }
  SessionWatch& watch() { return *watch_; }
  // Of the guard, for this client.
  WiringReport Report() const;

 private:
  void Round();

  WiringGuard& guard_;
  Options options_;
  uint32_t text_ = 0;
  int64_t sent_ = 0, round_ = 0;
  std::vector<int32_t> tokens_;
  std::string bytes_;  // [tokens, captures x hidden]
  std::unique_ptr<SessionWatch> watch_;
};

}  // namespace aerie
