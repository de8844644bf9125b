// A made-up target worker for tests: a sequence of tokens and rows whose bytes tell the row, so
// that a row in the wrong place cannot pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/draft_session.h"
#include "tests/client/fake_draft_service.h"

namespace aerie {

class Worker {
 public:
  explicit Worker(uint32_t seed = 1) : seed_(seed) {}

  // Adds rows up to `length` rows.
  void Grow(int64_t length);
  int64_t length() const { return static_cast<int64_t>(tokens_.size()); }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  const std::string& bytes() const { return bytes_; }

  // Rows [first, last) as a view into this worker.
  RowBatch Rows(int64_t first, int64_t last) const;
  // A call that brings the rows from `first` to the end.
  DraftInput Call(int64_t first, int32_t k) const;
  // Gives rows of this worker, which must outlive it.
  RowSource Source() const;
  // What the fake service drafts behind all rows.
  std::vector<int32_t> ExpectedDraft(int32_t k) const;

 private:
  const uint32_t seed_;
  std::vector<int32_t> tokens_;
  std::string bytes_;
};

}  // namespace aerie
