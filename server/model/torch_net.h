// A head on LibTorch: any kind of attention, on any processor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/model/eagle3_net.h"
#include "server/model/head_net.h"

namespace aerie {

class TorchNet final : public HeadNet {
 public:
  TorchNet(Eagle3Net net, const Checkpoint& checkpoint);

  const KvShape& kv_shape() const override { return net_.kv_shape(); }
  int64_t weight_bytes() const override { return net_.weight_bytes(); }
  int64_t step_bytes() const override { return net_.step_bytes(); }
  int64_t state_bytes() const override;
  std::string name() const override { return "LibTorch"; }
  // OpenMP keeps a team of threads for each that calls it.
  bool runs_on_any_thread() const override { return false; }

  // LibTorch keeps its number of threads by calling thread.
  void set_threads(int32_t threads) { threads_ = threads; }

  const std::byte* Run(const NetInput& input, KvPages& kv,
                       std::vector<StepOutput>& outputs) override;

 private:
  at::Tensor HiddenOf(const NetInput& input) const;
  void Judge(const NetInput& input, const at::Tensor& logits, std::vector<StepOutput>& outputs);

  Eagle3Net net_;
  int64_t hidden_size_;
  std::vector<int32_t> draft_to_target_;
  int32_t threads_ = 1;
  Questions questions_;
  at::Tensor feedback_;  // of the last pass
};

}  // namespace aerie
