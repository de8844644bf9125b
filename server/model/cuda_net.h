// A head on a CUDA device: weights, draft KV and all arithmetic there, with the kernels of
// server/kernels/cuda. The equations are those of eagle3_net.h.
//
// A pass is one copy in (one more for each run of extend rows that came alike), the kernels, one
// copy out and one wait: the search for the next level's nodes is the engine's, so its scores must
// come to the host between levels. What comes is a few numbers for each wanted row and its draft
// hidden state, never the scores. Passes of draft rows whose numbers of rows came before are
// replayed as one recording, a CUDA graph.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "server/model/cuda_inputs.h"
#include "server/model/cuda_weights.h"
#include "server/model/head_net.h"

namespace aerie {

class CudaNet final : public HeadNet {
 public:
  static bool Does(const HeadSpec& spec) {
    return spec.attention.value == AttentionKind::kGroupedQuery &&
           spec.head_dim.value <= kMaxHeadDim;
  }
  // FAILED_PRECONDITION when a weight is NaN or infinite. Throws DeviceError.
  static absl::StatusOr<std::unique_ptr<CudaNet>> Load(const Checkpoint& checkpoint,
                                                       DeviceElement element,
                                                       std::unique_ptr<Device> device);

  const KvShape& kv_shape() const override { return kv_shape_; }
  int64_t weight_bytes() const override { return weights_.bytes() + embedding_.nbytes(); }
  int64_t step_bytes() const override { return weights_.bytes(); }
  int64_t state_bytes() const override { return hidden_ * int64_t{sizeof(float)}; }
  std::string name() const override;
  bool runs_on_any_thread() const override { return false; }  // each has a device in use

  // The pages of `store` on the device. Throws DeviceError.
  void AttachStore(const KvStore& store) override;
  // What goes wrong is told by the next pass.
  void CopyPage(KvPages& kv, PageId from, PageId to) override;
  // Reads and writes pages of the device; `kv` keeps their books alone.
  const std::byte* Run(const NetInput& input, KvPages& kv,
                       std::vector<StepOutput>& outputs) override;

  // Off: every pass is started kernel by kernel. What comes out is the same.
  void set_recording(bool on) { recording_ = on; }
  // Passes that were replayed.
  int64_t replays() const { return replays_; }

 private:
  // What the kernels of a pass depend on beside the numbers in its memory.
  struct PassShape {
    int64_t rows, extend_rows, wanted;
    int32_t splits, top_k;
    bool operator<(const PassShape& other) const {
      return std::tie(rows, extend_rows, wanted, splits, top_k) <
             std::tie(other.rows, other.extend_rows, other.wanted, other.splits, other.top_k);
    }
  };
  // Of `chosen` rows, which is null where they are all.
  struct LayerInput {
    const float* x;
    int64_t x_width;
    const float* residual;
    const int32_t* chosen;
    int64_t chosen_count;
    const DeviceSeen* views;
    float* out;
  };

  CudaNet(WeightLoader& loader, const Checkpoint& checkpoint, DeviceElement element,
          std::unique_ptr<Device> device);

  // Whether something moved that recordings know the place of.
  bool Reserve(const PassShape& shape);
  void Fuse(const NetInput& input, int64_t rows);
  void RunFc(float* aux, int64_t rows, float* out);
  void Launch(const PassShape& shape);
  void LaunchLayer(const CudaLayer& layer, int64_t number, const LayerInput& input,
                   const PassShape& shape);
  void Replay(const PassShape& shape);
  void ForgetRecordings();
  void Norm(const CudaNorm& norm, const float* in, int64_t rows, float* out);
  void FindProbes(const NetInput& input);
  void JudgeRanked(const NetInput& input, std::vector<StepOutput>& outputs);
  void JudgeScores(const NetInput& input, std::vector<StepOutput>& outputs);

  // Where the parts of the result stand in its memory, in bytes.
  int64_t BestAt(int64_t wanted) const { return wanted * int64_t{sizeof(DeviceRowSummary)}; }
  int64_t StatesAt(int64_t wanted, int32_t k) const {
    return (BestAt(wanted) + wanted * k * int64_t{sizeof(DeviceScore)} + 15) / 16 * 16;
  }

  std::unique_ptr<Device> device_;  // outlives the rest
  KvShape kv_shape_;
  int64_t hidden_, heads_;
  float epsilon_, softmax_scale_;
  bool norm_before_residual_, norm_output_, interleaved_;
  Rotation rope_;
  MappedRows embedding_;
  std::vector<int32_t> draft_to_target_;
  CudaWeights weights_;
  KvStore store_;
  DeviceMemory pages_;
  std::optional<DeviceError> pending_;  // of copies of pages

  CudaInputs inputs_;
  DeviceMemory aux_host_, aux_, fused_, x_, residual_, z_, qkv_, attended_, normed_, gated_,
      scores_, candidates_, chunk_sums_, partials_, result_, result_host_, scores_host_;
  Questions questions_;
  std::vector<int32_t> probes_;

  bool recording_ = true;
  int64_t replays_ = 0;
  std::map<PassShape, std::optional<int32_t>> recordings_;  // nullopt: came once
};

}  // namespace aerie
