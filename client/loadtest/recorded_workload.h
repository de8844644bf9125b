// Recorded rows of a real target, whose continuation is the truth that proposals are measured
// against.
//
// A recording is a safetensors file with `N.tokens` [L] int32 and `N.aux` [L, width] for each
// sequence N, and beside it a JSON file that says what target and boundaries the rows are of and
// how long each prompt is. Row p is the state of position p, so row i goes with token i + 1 and the
// last row is never sent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/loadtest/workload.h"

namespace aerie::loadtest {

// Sequence `number` of a run is recorded sequence `number` modulo their count.
class RecordedWorkload : public Workload {
 public:
  struct Recorded {
    int64_t prompt_tokens = 0;
    std::vector<int32_t> tokens;  // x_0 ... x_{L-1}
    HiddenRows aux;               // [L, width]
  };

  // `path` is the folder of recording.safetensors and recording.json, or a .safetensors file with
  // its .json beside it. The recording does not say the target's vocabulary: `vocab_size` is the
  // server's.
  static absl::StatusOr<std::unique_ptr<RecordedWorkload>> Load(const std::string& path,
                                                                int32_t vocab_size);

  // `keeper` keeps the bytes of the sequences alive.
  RecordedWorkload(Manifest manifest, std::vector<Recorded> sequences,
                   std::shared_ptr<const void> keeper);

  const Manifest& manifest() const override { return manifest_; }
  int64_t size() const override { return static_cast<int64_t>(sequences_.size()); }
  std::unique_ptr<Sequence> NewSequence(int64_t number) const override;

 private:
  const Manifest manifest_;
  const std::vector<Recorded> sequences_;
  const std::shared_ptr<const void> keeper_;
};

}  // namespace aerie::loadtest
