// Rotation, the way into the pages, and attention of server/kernels/cuda against plain loops in
// float64. Rows that nobody wrote are NaN, so whoever reads one shows it.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/cuda/backends.h"

namespace aerie {
namespace {

constexpr double kTolerance = 3e-5;

// Sequences in one store, whose pages lie in no order.
struct Store {
  Store(uint32_t seed, int32_t heads, int32_t head_dim, int32_t rows, DeviceElement of)
      : kv_heads(heads), dim(head_dim), page_rows(rows), element(of), random(seed) {}

  int64_t element_bytes() const { return element == DeviceElement::kFloat32 ? 4 : 2; }
  // Behind the keys and values of a layer that is not looked at.
  int64_t layer_bytes() const { return int64_t{2} * kv_heads * page_rows * dim * element_bytes(); }
  int64_t page_bytes() const { return 2 * layer_bytes(); }

  DevicePages Pages(std::byte* at) const {
    return {.store = at,
            .page_bytes = page_bytes(),
            .keys_at = layer_bytes(),
            .values_at = layer_bytes() + layer_bytes() / 2,
            .page_rows = page_rows,
            .kv_heads = kv_heads,
            .head_dim = dim,
            .element = element};
  }

  // Page numbers for `rows` rows, taken from the shuffled rest.
  std::vector<int32_t> Table(int64_t rows) {
    std::vector<int32_t> table;
    for (int64_t i = 0; i * page_rows < rows; ++i) {
      table.push_back(free.back());
      free.pop_back();
    }
    return table;
  }
  void MakeFree(int32_t pages) {
    for (int32_t i = 0; i < pages; ++i) free.push_back(i);
    std::shuffle(free.begin(), free.end(), random);
  }

  float Stored(float value) const {
    return element == DeviceElement::kFloat32 ? value : OfBf16(Bf16Of(value));
  }

  int32_t kv_heads, dim, page_rows;
  DeviceElement element;
  std::mt19937 random;
  std::vector<int32_t> free;
};

class AttendKernelTest : public BackendTest {};

struct HeadShape {
  int32_t heads, kv_heads, dim, pairs, page_rows;
  DeviceElement element;
  bool interleaved, normed;
};

const HeadShape kShapes[] = {
    {2, 1, 12, 6, 4, DeviceElement::kFloat32, false, false},
    {9, 3, 64, 32, 16, DeviceElement::kBFloat16, false, true},
    {6, 1, 80, 20, 7, DeviceElement::kFloat32, true, true},
    {4, 4, 256, 128, 16, DeviceElement::kBFloat16, true, false},
    {3, 1, 300, 100, 5, DeviceElement::kFloat32, false, false},
};

// Keys and values of a whole sequence are written row by row, then queries with views of several
// kinds look at them.
TEST_P(AttendKernelTest, QueriesSeeWhatWasWrittenAndWhatTheyMayAlone) {
  for (const HeadShape& shape : kShapes) {
    for (const int64_t length : {1, 9, 70, 1200}) {
      if (length == 1200 && shape.dim > 64) continue;  // an emulated minute for nothing new
      Store store(17, shape.kv_heads, shape.dim, shape.page_rows, shape.element);
      const auto pages = static_cast<int32_t>(length / shape.page_rows + 3);
      store.MakeFree(pages);
      const std::vector<int32_t> table = store.Table(length);
      auto* const memory = Room<std::byte>(pages * store.page_bytes());
      if (shape.element == DeviceElement::kFloat32 || length < 1200) {
        const std::vector<std::byte> unwritten(pages * store.page_bytes(), std::byte{0xff});
        device().CopyWithin(memory, In(unwritten), static_cast<int64_t>(unwritten.size()));
      }
      const int64_t kv_width = int64_t{2} * shape.kv_heads * shape.dim,
                    query_width = int64_t{shape.heads} * shape.dim;
      const std::vector<float> kv = Numbers(1, length * kv_width),
                               angles = Numbers(2, length * shape.pairs),
                               key_norm = Numbers(3, shape.dim), query_norm = Numbers(4, shape.dim);
      std::vector<float> cos, sin;
      for (const float angle : angles) {
        cos.push_back(std::cos(3.0f * angle));
        sin.push_back(std::sin(3.0f * angle));
      }
      std::vector<int32_t> write_page, write_at;
      for (int64_t row = 0; row < length; ++row) {
        write_page.push_back(table[row / shape.page_rows]);
        write_at.push_back(static_cast<int32_t>(row % shape.page_rows));
      }

      // What the queries see, in one table: singles, then pages.
      const auto end = static_cast<int32_t>(length);
      std::vector<int32_t> numbers = {std::max(0, end - 3), end - 1};
      std::vector<DeviceSeen> seen = {
          {.late_begin = 0, .late_end = end},
          {.late_begin = end / 2, .late_end = end},
          {.early_begin = 0, .early_end = end / 4, .late_begin = end / 2, .late_end = end},
      };
      if (end >= 9) {
        seen.push_back({.late_begin = 0, .late_end = end - 5, .first_single = 0, .singles = 2});
        seen.push_back({.first_single = 1, .singles = 1});
      }
      for (DeviceSeen& row : seen) row.first_page = static_cast<int32_t>(numbers.size());
      numbers.insert(numbers.end(), table.begin(), table.end());
      const auto chosen = static_cast<int32_t>(std::min<int64_t>(seen.size(), length));
      std::vector<int32_t> chosen_rows;
      for (int32_t i = 0; i < chosen; ++i) chosen_rows.push_back(end - chosen + i);
      const std::vector<float> queries = Numbers(5, chosen * query_width);

      const DevicePages on_device = store.Pages(memory);
      float* const query_memory = In(queries);
      const float* const kv_memory = In(kv);
      device().Run(TurnOp{.pages = on_device,
                          .heads = shape.heads,
                          .rows = end,
                          .chosen = chosen,
                          .queries = query_memory,
                          .query_stride = query_width,
                          .chosen_rows = In(chosen_rows),
                          .keys = kv_memory,
                          .values = kv_memory + shape.kv_heads * shape.dim,
                          .kv_stride = kv_width,
                          .write_page = In(write_page),
                          .write_at = In(write_at),
                          .cos = In(cos),
                          .sin = In(sin),
                          .pairs = shape.pairs,
                          .interleaved = shape.interleaved,
                          .query_norm = shape.normed ? In(query_norm) : nullptr,
                          .key_norm = shape.normed ? In(key_norm) : nullptr,
                          .epsilon = 1e-5f});

      const auto turned = [&](const float* head, const std::vector<float>& norm, int64_t row) {
        std::vector<double> out(head, head + shape.dim);
        if (shape.normed) {
          double sum = 0.0;
          for (const double value : out) sum += value * value;
          for (int d = 0; d < shape.dim; ++d) out[d] *= norm[d] / std::sqrt(sum / shape.dim + 1e-5);
        }
        for (int pair = 0; pair < shape.pairs; ++pair) {
          const int one = shape.interleaved ? 2 * pair : pair;
          const int other = shape.interleaved ? 2 * pair + 1 : shape.pairs + pair;
          const double c = cos[row * shape.pairs + pair], s = sin[row * shape.pairs + pair];
          const double a = out[one], b = out[other];
          out[one] = a * c - b * s;
          out[other] = b * c + a * s;
        }
        return out;
      };
      const auto sees = [&](const DeviceSeen& view, int64_t row) {
        for (int32_t i = 0; i < view.singles; ++i) {
          if (numbers[view.first_single + i] == row) return true;
        }
        return (row >= view.early_begin && row < view.early_end) ||
               (row >= view.late_begin && row < view.late_end);
      };

      // With more splits than are needed, the rest must weigh nothing.
      const auto needed = static_cast<int32_t>((length + kSplitRows - 1) / kSplitRows);
      std::vector<std::vector<float>> results;
      for (const int32_t splits : {needed, 2 * needed}) {
        float* const out = Room<float>(chosen * query_width);
        device().Run(
            AttendOp{.pages = on_device,
                     .heads = shape.heads,
                     .chosen = chosen,
                     .scale = 0.3f,
                     .queries = query_memory,
                     .query_stride = query_width,
                     .seen = In(seen),
                     .table = In(numbers),
                     .splits = splits,
                     .partials = Room<float>(chosen * shape.heads * splits * (shape.dim + 2)),
                     .out = out});
        results.push_back(Out(out, chosen * query_width));
      }
      EXPECT_EQ(results[0], results[1]);

      const int32_t group = shape.heads / shape.kv_heads;
      std::vector<std::vector<double>> keys(length * shape.kv_heads);
      for (int64_t row = 0; row < length; ++row) {
        for (int head = 0; head < shape.kv_heads; ++head) {
          auto& key = keys[row * shape.kv_heads + head];
          key = turned(kv.data() + row * kv_width + head * shape.dim, key_norm, row);
        }
      }
      // Keys are rounded after another sum than ours: one may fall to the other side.
      const double tolerance = shape.element == DeviceElement::kFloat32 ? kTolerance : 3e-3;
      for (int32_t i = 0; i < chosen; ++i) {
        for (int head = 0; head < shape.heads; ++head) {
          const std::vector<double> query = turned(
              queries.data() + i * query_width + head * shape.dim, query_norm, chosen_rows[i]);
          double total = 0.0;
          std::vector<double> expected(shape.dim);
          for (int64_t row = 0; row < length; ++row) {
            if (!sees(seen[i], row)) continue;
            const auto& key = keys[row * shape.kv_heads + head / group];
            double score = 0.0;
            for (int d = 0; d < shape.dim; ++d)
              score += query[d] * store.Stored(static_cast<float>(key[d]));
            const double weight = std::exp(0.3 * score);
            total += weight;
            const float* const value =
                kv.data() + row * kv_width + (shape.kv_heads + head / group) * shape.dim;
            for (int d = 0; d < shape.dim; ++d) expected[d] += weight * store.Stored(value[d]);
          }
          for (int d = 0; d < shape.dim; ++d) {
            const double actual = results[0][i * query_width + head * shape.dim + d];
            ASSERT_TRUE(std::abs(actual - expected[d] / total) <= tolerance)
                << actual << " for " << expected[d] / total << ": " << length << " rows, query "
                << i << ", head " << head << " of " << shape.dim;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, AttendKernelTest, testing::ValuesIn(Backends()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace aerie
