// A head on our own kernels: weights packed at load, in float32, bfloat16 or int8, with float32 in
// between whatever they are. A pass allocates nothing once it has seen its like.
//
// What a reader would get wrong: bfloat16 weights here differ from LibTorch's bfloat16 path. There
// every intermediate result is rounded; here only the weights and the kept keys and values are, so
// a checkpoint in bfloat16 loses nothing but digits of its KV.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/kernels/score_board.h"
#include "server/model/head_net.h"
#include "server/model/packed_layer.h"
#include "server/model/packed_math.h"

namespace aerie {

class PackedNet final : public HeadNet {
 public:
  // Whether it can compute such a head.
  static bool Does(const HeadSpec& spec) {
    return spec.attention.value == AttentionKind::kGroupedQuery;
  }
  // FAILED_PRECONDITION when a weight is NaN or infinite. `load_threads`: that pack weights.
  static absl::StatusOr<std::unique_ptr<PackedNet>> Load(const Checkpoint& checkpoint,
                                                         WeightElement element,
                                                         int32_t load_threads = 1);

  const KvShape& kv_shape() const override { return kv_shape_; }
  int64_t weight_bytes() const override { return weight_bytes_; }
  int64_t step_bytes() const override { return weight_bytes_ - embedding_.nbytes(); }
  int64_t state_bytes() const override { return hidden_ * int64_t{sizeof(float)}; }
  std::string name() const override;
  bool runs_on_any_thread() const override { return true; }

  // Whether a pass uses all threads, or as many of them as its work is worth (ThreadsWorth()).
  enum class ThreadUse { kAll, kByWork };
  // Starts the threads of its passes, the caller's included. Once, before the first pass.
  void StartThreads(int32_t threads, ThreadUse use = ThreadUse::kAll);

  // Of the last pass.
  int32_t threads_in_use() const { return pool_->in_use(); }

  const std::byte* Run(const NetInput& input, KvPages& kv,
                       std::vector<StepOutput>& outputs) override;

 private:
  // How many threads the pass should use.
  int32_t ThreadsOf(const PassRows& rows) const;
  PackedNet(WeightLoader& loader, const Checkpoint& checkpoint, WeightElement element);

  void GatherHidden(const NetInput& input, const ProductRunner& products);
  // Rows [first, end) of aux_ [rows, fc's inputs] -> those of hidden_states_.
  void Fuse(int64_t first, int64_t end, const ProductRunner& products);
  void PrepareRows(const PassRows& rows, int64_t first, int64_t end);
  // Leaves z of the wanted rows at z_at_.
  void RunLayers(const NetInput& input, const ProductRunner& products, KvPages& kv);
  void Judge(const NetInput& input, const float* normed, std::vector<StepOutput>& outputs);
  void JudgeTapped(const NetInput& input, std::vector<StepOutput>& outputs);
  void JudgeInPieces(const NetInput& input, std::vector<StepOutput>& outputs);

  KvShape kv_shape_;
  WeightElement element_;
  int64_t hidden_, weight_bytes_ = 0;
  bool norm_before_residual_, norm_output_;
  Rotation rope_;
  MappedRows embedding_;
  PackedNorm fc_input_norm_;
  std::vector<PackedNorm> fc_norms_;  // one for each capture, or none
  PackedMatrix fc_;                   // empty without aux hidden states
  PackedNorm hidden_norm_;
  std::vector<PackedNorm> input_norms_;  // of each layer
  std::vector<PackedLayer> layers_;
  PackedNorm final_norm_;
  PackedMatrix output_;
  std::vector<int32_t> draft_to_target_;
  std::unique_ptr<ThreadPool> pool_;
  ThreadUse thread_use_ = ThreadUse::kAll;

  // Of one pass.
  FloatBuffer aux_, hidden_states_, x_, residual_, z_, normed_, logits_;
  float* z_at_ = nullptr;
  std::vector<FloatBuffer> pieces_;  // of each thread
  std::vector<float> cos_, sin_;
  std::vector<int64_t> every_;  // 0, 1, ...
  AttentionPlan plan_, last_plan_;
  ProductInput input_;
  ScoreBoard board_;
  Questions questions_;
  std::vector<int64_t> probes_;  // draft id of each wanted row's probe; -1: none or outside
  std::vector<float> probe_scores_;
};

}  // namespace aerie
