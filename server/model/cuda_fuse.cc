// What a pass needs beside its inputs: hidden states of extend rows, and ids to ask for.
#include <algorithm>

#include "server/model/cuda_net.h"

namespace aerie {

// The first layer's hidden states of extend rows, which come first in a pass. Rows that came fused
// are such states already; all that stand next to each other and did not go through fc together.
void CudaNet::Fuse(const NetInput& input, int64_t rows) {
  const int64_t captures = weights_.fc.has_value() ? weights_.fc->inputs : hidden_;
  const int64_t widest = std::max(captures, hidden_);
  aux_host_.Reserve<float>(rows * widest);
  if (weights_.fc.has_value()) aux_.Reserve<float>(rows * captures);
  int64_t run = 0, run_end = 0;
  bool run_is_fused = false;
  const auto bring_run = [&] {
    if (run == run_end) return;
    const float* const host = aux_host_.Get<float>() + run * widest;
    const int64_t count = run_end - run;
    if (run_is_fused) {
      device_->CopyIn(fused_.Get<float>() + run * hidden_, host,
                      count * hidden_ * int64_t{sizeof(float)});
    } else {
      float* const aux = aux_.Get<float>() + run * captures;
      device_->CopyIn(aux, host, count * captures * int64_t{sizeof(float)});
      RunFc(aux, count, fused_.Get<float>() + run * hidden_);
    }
  };
  for (const NetSequence& sequence : input.rows.sequences()) {
    const StepSequence& part = input.batch[sequence.part];
    if (!part.IsExtend()) continue;
    const bool is_fused = part.fused || !weights_.fc.has_value();
    const int64_t width = is_fused ? hidden_ : captures;
    if (is_fused != run_is_fused || run_end != sequence.first) {
      bring_run();
      run = sequence.first;
      run_is_fused = is_fused;
    }
    // Behind the rows of its run, which begin where the run would with rows of any kind.
    float* const to = aux_host_.Get<float>() + run * widest + (sequence.first - run) * width;
    part.aux.CopyToFloat({to, static_cast<size_t>(part.aux.rows() * width)});
    run_end = sequence.first + part.aux.rows();
  }
  bring_run();
}

// `aux` [rows, captures] is overwritten by its norms.
void CudaNet::RunFc(float* aux, int64_t rows, float* out) {
  const int64_t width = weights_.fc->inputs;
  const auto run = [&](const CudaNorm& norm, float* in) {
    device_->Run(NormOp{.in = in,
                        .in_stride = width,
                        .weight = norm.weight,
                        .epsilon = epsilon_,
                        .rows = static_cast<int32_t>(rows),
                        .width = norm.width,
                        .out = in,
                        .out_stride = width});
  };
  if (weights_.fc_input_norm.weight != nullptr) run(weights_.fc_input_norm, aux);
  float* capture = aux;
  for (const CudaNorm& own : weights_.fc_norms) {
    run(own, capture);
    capture += own.width;
  }
  device_->Run(ProductOp{.matrix = *weights_.fc,
                         .channels = weights_.fc->channels,
                         .rows = static_cast<int32_t>(rows),
                         .in = aux,
                         .in_stride = width,
                         .out = out,
                         .out_stride = hidden_});
}

// Draft ids of what is asked for beside the best.
void CudaNet::FindProbes(const NetInput& input) {
  questions_.Assign(input.batch, input.rows);
  probes_.assign(input.rows.wanted().size(), -1);
  for (const Question& asked : questions_.all()) {
    if (asked.probe < 0) continue;
    const auto found =
        std::lower_bound(draft_to_target_.begin(), draft_to_target_.end(), asked.probe);
    if (found != draft_to_target_.end() && *found == asked.probe)
      probes_[asked.number] = static_cast<int32_t>(found - draft_to_target_.begin());
  }
}

}  // namespace aerie
