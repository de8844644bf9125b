// How long draft steps and extends of a drafter on a device take, as JSON.
//
// What a reader would get wrong: a time is from giving the batch to having its scores on the host,
// so it holds the copies, the wait and the host's own work. `floor_us` is of the weights alone;
// with long contexts draft KV is more than these, and `floor_with_kv_us` has both.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/model/cuda_net.h"
#include "server/model/eagle3_pass.h"
#include "tests/benchmarks/head_work.h"

namespace aerie {

// What is measured until the time is up; what no time was left for is named.
class Budget {
 public:
  explicit Budget(double seconds)
      : end_(std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds)) {}
  bool Allows(const std::string& what) {
    if (std::chrono::steady_clock::now() < end_) return true;
    left_out_.push_back(what);
    return false;
  }
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<double>> end_;
  std::vector<std::string> left_out_;
};

// A drafter on a device, and the switch of its graphs.
struct Drafter {
  CudaNet* net = nullptr;
  std::unique_ptr<Eagle3Model> model;
};

struct PassTimesOptions {
  std::vector<int64_t> contexts = {128, 2048, 8192}, batches = {1, 4, 8, 32};
  std::vector<int64_t> extends = {1, 3, 512};  // rows
  int32_t rounds = 5, repeats = 10;
};

// One entry for each context and batch, with graphs and without, measured in turns.
nlohmann::json StepTimes(Drafter& drafter, int64_t step_bytes, double bytes_per_second,
                         const PassTimesOptions& options, Budget& budget);
// `product_rate`: operations a second of a large product.
nlohmann::json ExtendTimes(Drafter& drafter, const HeadWork& work, double product_rate,
                           const PassTimesOptions& options, Budget& budget);

}  // namespace aerie
