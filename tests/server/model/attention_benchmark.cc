// Our attention over pages against LibTorch's over the same rows in one piece, for which it is
// given a copy and a mask that it does not pay for: microseconds of both in one run, and their
// ratio, one JSON object a line.
//
//   OMP_NUM_THREADS=1 build/release/bin/attention-benchmark
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <vector>

#include "common/check.h"
#include "server/model/attend.h"

namespace aerie {
namespace {

struct Work {
  const char* name;
  int64_t kv_heads, group, key_dim, value_dim;
  int64_t context, rows;  // rows that are there, and rows that come and ask
  KvElement element = KvElement::kFloat32;
};

constexpr double kScale = 0.125;

// The least of several: the others were disturbed.
double Microseconds(const std::function<void()>& body) {
  double least = 1e30;
  body();
  for (int trial = 0; trial < 25; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - start;
    least = std::min(least, taken.count());
  }
  return least;
}

// `queries` [rows, heads, key_dim], `keys` and `values` [kv heads, length, width].
at::Tensor Theirs(const Work& work, const at::Tensor& queries, const at::Tensor& keys,
                  const at::Tensor& values, const at::Tensor& mask) {
  const at::Tensor own = queries.to(keys.scalar_type());
  if (work.rows == 1) {
    return at::scaled_dot_product_attention(
               own.reshape({1, work.kv_heads, work.group, work.key_dim}), keys.unsqueeze(0),
               values.unsqueeze(0), {}, 0.0, false, kScale)
        .reshape({1, -1});
  }
  return at::scaled_dot_product_attention(
             own.view({work.rows, work.kv_heads, work.group, -1}).permute({1, 2, 0, 3}),
             keys.unsqueeze(1).expand({-1, work.group, -1, -1}),
             values.unsqueeze(1).expand({-1, work.group, -1, -1}), mask, 0.0, false, kScale)
      .permute({2, 0, 1, 3})
      .reshape({work.rows, -1});
}

void Run(const Work& work) {
  const int64_t length = work.context + work.rows;
  const at::ScalarType type = work.element == KvElement::kFloat32 ? at::kFloat : at::kBFloat16;
  const at::Tensor keys = at::randn({work.kv_heads, length, work.key_dim}).to(type);
  const at::Tensor values = at::randn({work.kv_heads, length, work.value_dim}).to(type);
  const at::Tensor queries = at::randn({work.rows, work.kv_heads * work.group, work.key_dim});
  const at::Tensor mask = at::ones({work.rows, length}, at::kBool).tril(work.context);

  auto reserved = KvPages::Reserve({.kv_heads = work.kv_heads,
                                    .key_dim = work.key_dim,
                                    .value_dim = work.value_dim,
                                    .element = work.element},
                                   int64_t{2} << 30, 16);
  AERIE_CHECK(reserved.ok());
  KvPages& kv = *reserved;
  std::vector<PageId> pages;
  for (int64_t row = 0; row < length; row += kv.store().page_rows)
    pages.push_back(static_cast<PageId>(row * 7 % 1021));
  kv.Write(0, pages, 0, length, keys.transpose(0, 1).contiguous().const_data_ptr(),
           values.transpose(0, 1).contiguous().const_data_ptr());
  const std::vector<int32_t> tokens(work.rows);
  const std::vector<float> states(work.rows);
  const StepSequence part{.pages = pages,
                          .length = work.context,
                          .tokens = tokens,
                          .aux = *HiddenRows::Create(
                              DType::kF32, work.rows, 1,
                              {reinterpret_cast<const char*>(states.data()), 4 * states.size()})};
  const RoundSlots slots(4);
  const PassRows rows({&part, 1}, slots, kv.store().page_rows);
  const RowChoice every(work.rows);

  at::Tensor ours, theirs;
  const double theirs_us =
      Microseconds([&] { theirs = Theirs(work, queries, keys, values, mask); });
  const double ours_us = Microseconds([&] { ours = Attend(queries, rows, every, kv, 0, kScale); });
  const double difference = (ours - theirs.to(at::kFloat)).abs().max().item<double>();
  std::cout << "{\"work\": \"" << work.name << "\", \"ours_us\": " << ours_us
            << ", \"libtorch_us\": " << theirs_us << ", \"ratio\": " << ours_us / theirs_us
            << ", \"largest_difference\": " << difference << "}" << std::endl;
}

}  // namespace
}  // namespace aerie

int main() {
  using aerie::KvElement;
  const c10::InferenceMode no_gradients;
  for (const aerie::Work& work : {
           aerie::Work{"demo, 1 row at 500", 3, 3, 64, 64, 500, 1},
           {"demo, 1 row at 4000", 3, 3, 64, 64, 4000, 1},
           {"demo, 512 rows at 0", 3, 3, 64, 64, 0, 512},
           {"demo, 512 rows at 1024", 3, 3, 64, 64, 1024, 512},
           {"8B, 1 row at 500", 8, 4, 128, 128, 500, 1},
           {"8B, 512 rows at 0", 8, 4, 128, 128, 0, 512},
           {"8B bf16, 1 row at 500", 8, 4, 128, 128, 500, 1, KvElement::kBFloat16},
           {"8B bf16, 512 rows at 0", 8, 4, 128, 128, 0, 512, KvElement::kBFloat16},
           {"latent, 1 row at 500", 64, 1, 192, 128, 500, 1},
           {"latent, 512 rows at 0", 64, 1, 192, 128, 0, 512},
       }) {
    aerie::Run(work);
  }
}
