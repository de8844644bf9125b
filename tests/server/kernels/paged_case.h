// A random sequence in pages that are in no order, and what queries should make of it by plain
// loops in float64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "server/kernels/attention.h"

namespace aerie {

class PagedCase {
 public:
  // `length` rows of random extents. Rows of the store that nobody wrote are NaN.
  PagedCase(uint32_t seed, int64_t length, int32_t page_rows, KvElement element);

  int64_t length() const { return length_; }
  int32_t page_rows() const { return page_rows_; }
  int32_t group() const { return group_; }
  // A random number in 0 .. bound - 1.
  int32_t Below(int64_t bound) { return static_cast<int32_t>(random_() % bound); }

  // The worst difference between what AttendPages makes of random queries up to `size`, one row of
  // them for each of `seen`, and what it should; infinity for NaN. Pages that none sees are missing
  // from then on.
  double WorstDifference(const std::vector<SeenRows>& seen, CpuLevel level, float size = 2.0f);

  // Random queries up to `size`, and what AttendPages makes of them. Between two rows of either
  // there is room, which stays as it is.
  std::vector<float> Queries(int64_t rows, float size);
  std::vector<float> Attend(const std::vector<float>& queries, const std::vector<SeenRows>& seen,
                            CpuLevel level);
  int64_t query_stride() const { return group_ * key_dim_ + 3; }
  int64_t out_stride() const { return group_ * value_dim_ + 2; }

 private:
  int64_t element_bytes() const { return element_ == KvElement::kFloat32 ? 4 : 2; }
  int64_t page_bytes() const { return page_rows_ * (key_dim_ + value_dim_) * element_bytes(); }
  std::vector<float> Numbers(int64_t count, float size = 2.0f);
  std::vector<float> Storable(int64_t count);
  void Write(const std::vector<float>& numbers, int64_t at);
  void DropUnseenPages(const std::vector<SeenRows>& seen);
  std::vector<double> Expected(const float* query, const SeenRows& seen, bool rounds) const;

  std::mt19937 random_;
  int64_t length_;
  int32_t page_rows_;
  KvElement element_;
  int32_t key_dim_, value_dim_, group_;
  std::vector<int32_t> pages_;
  std::vector<std::byte> store_;                   // of each page: keys, then values
  std::vector<std::vector<float>> keys_, values_;  // as stored, by row
  AttentionScratch scratch_;
};

}  // namespace aerie
