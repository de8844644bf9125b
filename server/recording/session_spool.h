// Rows of one session on their way to a sample of a recording.
//
// A worker sends rows round by round, takes some back, and never says the first token of its
// sequence: row r pairs the state of position r with the token of position r + 1. A sample pairs
// each position's state with its own token, so it begins at position 1, and the newest token, whose
// state is still to come, is not in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/dtype.h"

namespace aerie {

// Of all sessions of a recording.
struct SpoolShape {
  DType dtype = DType::kF32;
  int64_t hidden_size = 0;
  std::vector<std::string> tensors;  // names, in the order of the row's parts

  int64_t part_bytes() const;  // of one row in one tensor
  int64_t row_bytes() const { return part_bytes() * static_cast<int64_t>(tensors.size()); }
};

class SessionSpool {
 public:
  // UNAVAILABLE: the file cannot be made.
  static absl::StatusOr<std::unique_ptr<SessionSpool>> Create(std::string path,
                                                              const SpoolShape& shape);
  // Removes the file.
  ~SessionSpool();

  // Rows from `base` on, in place of those that are there. FAILED_PRECONDITION: there is a gap in
  // front of them. UNAVAILABLE: the disk does not take them.
  absl::Status Add(int64_t base, absl::Span<const int32_t> tokens, std::string_view bytes);

  int64_t rows() const { return static_cast<int64_t>(tokens_.size()); }
  // On disk: the longest that the session has been.
  int64_t bytes() const { return most_rows_ * shape_.row_bytes(); }
  // Of the sample that WriteSample() would write; 0: too few rows for one.
  int64_t sample_tokens() const { return rows() > 1 ? rows() - 1 : 0; }
  // Rows that came before the first draft; 0: not known.
  void set_prompt_rows(int64_t rows) { prompt_rows_ = rows; }
  // Of the sample; absent: not known. Row r of a prompt brings the prompt's token r + 1, but its
  // last row the first token of the answer.
  std::optional<int64_t> prompt_tokens() const;
  static int64_t MostBytesBesideRows(const SpoolShape& shape, int64_t rows);

  // As a safetensors file. At least one token. UNAVAILABLE: it cannot be written.
  absl::Status WriteSample(const std::string& path, const std::string& name) const;

 private:
  SessionSpool(std::string path, int file, const SpoolShape& shape)
      : path_(std::move(path)), file_(file), shape_(shape) {}

  const std::string path_;
  const int file_;
  const SpoolShape shape_;
  std::vector<int32_t> tokens_;  // of each row
  int64_t most_rows_ = 0;
  int64_t prompt_rows_ = 0;
};

}  // namespace aerie
