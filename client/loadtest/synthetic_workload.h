// Random rows, and a target that keeps what an AcceptProcess says. The true accept length is
// therefore known, whatever the drafter does.
#pragma once

#include <memory>
#include <string>

#include "client/loadtest/accept_process.h"
#include "client/loadtest/workload.h"

namespace aerie::loadtest {

struct SyntheticOptions {
  Manifest manifest;
  int64_t prompt_rows = 1;
  AcceptProcess accept = AcceptProcess::ByChance({0.7});
  uint64_t seed = 0;
};

class SyntheticWorkload : public Workload {
 public:
  explicit SyntheticWorkload(SyntheticOptions options);

  const Manifest& manifest() const override { return options_.manifest; }
  int64_t size() const override { return 0; }
  std::unique_ptr<Sequence> NewSequence(int64_t number) const override;

  const SyntheticOptions& options() const { return options_; }
  // Finite rows, any `count` consecutive ones up to pool_rows() from an index below pool_rows().
  HiddenRows Pool(int64_t first, int64_t count) const;
  int64_t pool_rows() const { return pool_rows_; }

 private:
  const SyntheticOptions options_;
  const int64_t pool_rows_;
  std::string pool_;  // every row twice, so that a run over the end is in one piece
};

}  // namespace aerie::loadtest
