#include "tests/server/kernels/paged_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "gtest/gtest.h"
#include "tests/server/kernels/levels.h"

namespace aerie {
namespace {

constexpr int32_t kNoPage = -1;
constexpr float kScale = 0.3f;

// One expression for both elements: GCC 12 drops the mask at -O1 and -O2 when it stands in a branch
// whose other side gives the value itself.
float Rounded(float value, KvElement element) {
  const uint32_t kept = element == KvElement::kFloat32 ? 0xffffffffu : 0xffff0000u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & kept);
}

// The nearest number of eight binary digits, or the even one of two.
double Nearest(double value) {
  int exponent = 0;
  const double digits = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(digits * 256.0), exponent - 8);
}

bool Sees(const SeenRows& seen, int64_t row) {
  const auto within = [row](const RowRange& r) { return r.begin <= row && row < r.end; };
  return within(seen.early) || within(seen.late) ||
         std::find(seen.single, seen.single + seen.singles, row) != seen.single + seen.singles;
}

}  // namespace

PagedCase::PagedCase(uint32_t seed, int64_t length, int32_t page_rows, KvElement element)
    : random_(seed),
      length_(length),
      page_rows_(page_rows),
      element_(element),
      key_dim_(1 + Below(70)),
      value_dim_(1 + Below(150)),
      group_(1 + Below(7)) {
  const auto count = static_cast<int32_t>((length + page_rows - 1) / page_rows);
  for (int32_t i = 0; i < count; ++i) pages_.push_back((i * 7 + 3) % (count * 7 + 1));
  store_.resize((count * 7 + 1) * page_bytes(), std::byte{0xff});  // NaN in both elements
  for (int64_t row = 0; row < length; ++row) {
    keys_.push_back(Storable(key_dim_));
    values_.push_back(Storable(value_dim_));
    const int64_t page = pages_[row / page_rows] * page_bytes(), at = row % page_rows;
    Write(keys_.back(), page + at * key_dim_ * element_bytes());
    Write(values_.back(), page + (page_rows * key_dim_ + at * value_dim_) * element_bytes());
  }
}

std::vector<float> PagedCase::Queries(int64_t rows, float size) {
  return Numbers(rows * query_stride(), size);
}

std::vector<float> PagedCase::Attend(const std::vector<float>& queries,
                                     const std::vector<SeenRows>& seen, CpuLevel level) {
  const auto rows = static_cast<int64_t>(seen.size());
  std::vector<float> out(rows * out_stride(), 77.0f);
  const AttentionArgs args{.kv = {.keys = store_.data(),
                                  .values = store_.data() + page_rows_ * key_dim_ * element_bytes(),
                                  .page_bytes = page_bytes(),
                                  .pages = pages_.data(),
                                  .page_rows = page_rows_,
                                  .key_dim = key_dim_,
                                  .value_dim = value_dim_,
                                  .element = element_},
                           .rows = rows,
                           .group = group_,
                           .seen = seen.data(),
                           .queries = queries.data(),
                           .query_stride = query_stride(),
                           .out = out.data(),
                           .out_stride = out_stride(),
                           .scale = kScale};
  AttendPages(args, scratch_, level);
  return out;
}

double PagedCase::WorstDifference(const std::vector<SeenRows>& seen, CpuLevel level, float size) {
  DropUnseenPages(seen);
  const auto rows = static_cast<int64_t>(seen.size());
  const std::vector<float> queries = Queries(rows, size);
  const std::vector<float> out = Attend(queries, seen, level);
  const bool rounds = RoundsQueries(level, element_);
  double worst = 0.0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int32_t g = 0; g < group_; ++g) {
      const float* const query = queries.data() + row * query_stride() + g * key_dim_;
      const std::vector<double> expected = Expected(query, seen[row], rounds);
      for (int32_t d = 0; d < value_dim_; ++d) {
        const double difference =
            std::abs(out[row * out_stride() + g * value_dim_ + d] - expected[d]);
        if (std::isnan(difference)) worst = std::numeric_limits<double>::infinity();
        worst = std::max(worst, difference);
      }
    }
    EXPECT_EQ(out[(row + 1) * out_stride() - 1], 77.0f) << "written past the row";
  }
  return worst;
}

std::vector<float> PagedCase::Numbers(int64_t count, float size) {
  std::uniform_real_distribution<float> numbers(-2.0f, 2.0f);
  std::vector<float> out(count);
  for (float& value : out) value = numbers(random_) * (size / 2.0f);
  return out;
}

std::vector<float> PagedCase::Storable(int64_t count) {
  std::vector<float> out = Numbers(count);
  for (float& value : out) value = Rounded(value, element_);
  return out;
}

void PagedCase::Write(const std::vector<float>& numbers, int64_t at) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(numbers[i]);
    const auto half = static_cast<uint16_t>(bits >> 16);
    if (element_ == KvElement::kFloat32) {
      std::memcpy(store_.data() + at + 4 * i, &bits, 4);
    } else {
      std::memcpy(store_.data() + at + 2 * i, &half, 2);
    }
  }
}

void PagedCase::DropUnseenPages(const std::vector<SeenRows>& seen) {
  for (size_t page = 0; page < pages_.size(); ++page) {
    bool any = false;
    for (int64_t i = 0; i < page_rows_; ++i) {
      for (const SeenRows& rows : seen)
        any = any || Sees(rows, static_cast<int64_t>(page) * page_rows_ + i);
    }
    if (!any) pages_[page] = kNoPage;
  }
}

std::vector<double> PagedCase::Expected(const float* query, const SeenRows& seen,
                                        bool rounds) const {
  std::vector<double> scores(length_, -std::numeric_limits<double>::infinity());
  double largest = scores[0];
  for (int64_t row = 0; row < length_; ++row) {
    if (!Sees(seen, row)) continue;
    scores[row] = 0.0;
    for (int32_t d = 0; d < key_dim_; ++d) {
      const double asked = rounds ? Nearest(query[d]) : query[d];
      scores[row] += double{kScale} * asked * double{keys_[row][d]};
    }
    largest = std::max(largest, scores[row]);
  }
  std::vector<double> out(value_dim_);
  double total = 0.0;
  for (int64_t row = 0; row < length_; ++row) {
    const double weight = std::exp(scores[row] - largest);
    total += weight;
    for (int32_t d = 0; d < value_dim_; ++d) out[d] += weight * double{values_[row][d]};
  }
  for (double& value : out) value /= total;
  return out;
}

}  // namespace aerie
