// Loading, and from rows to z; packed_judge.cc does the rest.
#include "server/model/packed_net.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "server/model/cpu_budget.h"

namespace aerie {
namespace {

KvElement KvElementOf(WeightElement element) {
  return element == WeightElement::kFloat32 ? KvElement::kFloat32 : KvElement::kBFloat16;
}

// Rows that one thread prepares at a time.
constexpr int64_t kTaskRows = 32;

int64_t BytesOf(WeightElement element) {
  return element == WeightElement::kFloat32 ? 4 : element == WeightElement::kBFloat16 ? 2 : 1;
}

// Captures differ in size by orders of magnitude, from boundary to boundary and from channel to
// channel, and so do the weights that meet them: one scale for a whole row of int8 would leave the
// small ones a few steps each. No draft step reads fc, so bfloat16 costs an extend a little.
WeightElement FcElement(WeightElement element) {
  return element == WeightElement::kInt8 ? WeightElement::kBFloat16 : element;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PackedNet>> PackedNet::Load(const Checkpoint& checkpoint,
                                                           WeightElement element,
                                                           int32_t load_threads) {
  WeightLoader loader(checkpoint, at::kFloat, load_threads);
  std::unique_ptr<PackedNet> net(new PackedNet(loader, checkpoint, element));
  AERIE_RETURN_IF_ERROR(loader.status());
  return net;
}

PackedNet::PackedNet(WeightLoader& loader, const Checkpoint& checkpoint, WeightElement element)
    : kv_shape_(KvShapeOf(loader.spec(), KvElementOf(element))),
      element_(element),
      hidden_(loader.spec().hidden_size.value),
      norm_before_residual_(loader.spec().norm_before_residual.value),
      norm_output_(loader.spec().norm_output.value),
      rope_(loader.spec().rope),
      embedding_(loader.Embedding()),
      draft_to_target_(checkpoint.draft_to_target) {
  const HeadSpec& spec = loader.spec();
  const auto norm = [&](const TensorKey& key) {
    return PackedNorm{loader.Vector({key}), static_cast<float>(spec.rms_norm_eps.value)};
  };
  if (spec.use_aux_hidden_state.value) fc_ = loader.Packed({HeadTensor::kFc}, FcElement(element));
  if (spec.norm_before_fc.value) fc_input_norm_ = norm(HeadTensor::kFcInputNorm);
  if (spec.fc_norm.value) {
    for (int32_t i = 0; i < spec.num_captures.value; ++i)
      fc_norms_.push_back(norm({HeadTensor::kFcNorm, i}));
  }
  hidden_norm_ = norm(HeadTensor::kHiddenNorm);
  for (int32_t i = 0; i < spec.num_layers.value; ++i) {
    input_norms_.push_back(norm({HeadTensor::kInputNorm, i}));
    layers_.emplace_back(loader, i, element);
  }
  final_norm_ = norm(HeadTensor::kFinalNorm);
  output_ = loader.Packed({HeadTensor::kOutput}, element);
  weight_bytes_ = loader.bytes();
}

std::string PackedNet::name() const {
  return absl::StrCat("own kernels, ", CpuLevelName(BestCpuLevel()));
}

void PackedNet::StartThreads(int32_t threads, ThreadUse use) {
  pool_ = std::make_unique<ThreadPool>(threads);
  thread_use_ = use;
}

int32_t PackedNet::ThreadsOf(const PassRows& rows) const {
  if (thread_use_ == ThreadUse::kAll) return pool_->threads();
  const int64_t weights = step_bytes() / BytesOf(element_);
  int64_t kept = 0;  // rows that are attended to, of the last layer: others attend to no more
  for (const int64_t row : rows.wanted()) kept += rows.lengths()[row];
  const int64_t read = step_bytes() + kept * kv_shape_.row_bytes();
  return ThreadsWorth(std::max(read, weights * rows.count()), pool_->threads());
}

void PackedNet::Fuse(int64_t first, int64_t end, const ProductRunner& products) {
  if (first == end) return;
  const int64_t width = fc_.inputs(), rows = end - first;
  float* const aux = aux_.Get(0) + first * width;
  if (fc_input_norm_.exists()) fc_input_norm_.Run(aux, width, rows, aux, width);
  float* capture = aux;
  for (const PackedNorm& norm : fc_norms_) {
    norm.Run(capture, width, rows, capture, width);
    capture += norm.width();
  }
  input_.Set(aux, rows, width, width, fc_.element());
  products.Run({{.matrix = &fc_,
                 .input = &input_,
                 .out = hidden_states_.Get(0) + first * hidden_,
                 .out_stride = hidden_}});
}

// h of all rows: extend rows come first in a pass. Those that came fused are h already; all that
// stand next to each other and did not go through fc together.
void PackedNet::GatherHidden(const NetInput& input, const ProductRunner& products) {
  float* const hidden = hidden_states_.Get(input.rows.count() * hidden_);
  int64_t extend_rows = 0;
  for (const StepSequence& part : input.batch) extend_rows += part.aux.rows();
  const int64_t width = fc_.empty() ? 0 : fc_.inputs();
  float* const aux = aux_.Get(extend_rows * width);
  int64_t run = 0, run_end = 0;  // rows whose captures are in aux and not yet through fc
  for (const NetSequence& sequence : input.rows.sequences()) {
    const StepSequence& part = input.batch[sequence.part];
    if (part.IsExtend()) {
      const int64_t rows = part.aux.rows();
      if (part.fused || fc_.empty()) {
        part.aux.CopyToFloat(
            {hidden + sequence.first * hidden_, static_cast<size_t>(rows * hidden_)});
        continue;
      }
      if (run_end != sequence.first) {
        Fuse(run, run_end, products);
        run = sequence.first;
      }
      part.aux.CopyToFloat({aux + sequence.first * width, static_cast<size_t>(rows * width)});
      run_end = sequence.first + rows;
      continue;
    }
    float* to = hidden + sequence.first * hidden_;
    for (const int32_t parent : part.parents) {
      std::memcpy(to, input.slots.at(part.slot).state(parent), state_bytes());
      to += hidden_;
    }
  }
  Fuse(run, run_end, products);
}

// Of rows [first, end): angles, the first layer's input and its residual.
void PackedNet::PrepareRows(const PassRows& rows, int64_t first, int64_t end) {
  const int64_t pairs = rope_.pairs(), count = end - first;
  float* const x = x_.Get(0) + first * 2 * hidden_;
  const float* const hidden = hidden_states_.Get(0) + first * hidden_;
  float* const residual = residual_.Get(0) + first * hidden_;
  for (int64_t row = first; row < end; ++row) {
    rope_.FillTurns(rows.positions()[row], rows.lengths()[row], cos_.data() + row * pairs,
                    sin_.data() + row * pairs);
    embedding_.CopyRow(rows.ids()[row], x + (row - first) * 2 * hidden_);
  }
  input_norms_[0].Run(x, 2 * hidden_, count, x, 2 * hidden_);
  hidden_norm_.Run(hidden, hidden_, count, x + hidden_, 2 * hidden_);
  for (int64_t row = 0; row < count; ++row) {
    const float* const from =
        norm_before_residual_ ? x + row * 2 * hidden_ + hidden_ : hidden + row * hidden_;
    std::memcpy(residual + row * hidden_, from, hidden_ * sizeof(float));
  }
}

void PackedNet::RunLayers(const NetInput& input, const ProductRunner& products, KvPages& kv) {
  const PassRows& rows = input.rows;
  const int64_t count = rows.count();
  if (static_cast<int64_t>(every_.size()) < count) {
    every_.resize(count);
    std::iota(every_.begin(), every_.end(), 0);
    cos_.resize(count * rope_.pairs());
    sin_.resize(count * rope_.pairs());
  }
  float* const x = x_.Get(count * 2 * hidden_);
  // The residual of one layer becomes that of the next, so each writes where the last did not.
  float* z = z_.Get(count * hidden_);
  float* residual = residual_.Get(count * hidden_);
  pool_->Run((count + kTaskRows - 1) / kTaskRows, [&](int64_t task, int) {
    PrepareRows(rows, task * kTaskRows, std::min(count, (task + 1) * kTaskRows));
  });
  const absl::Span<const int64_t> every(every_.data(), count);
  last_plan_.Assign(rows, rows.wanted(), kv_shape_.kv_heads);
  if (layers_.size() > 1) plan_.Assign(rows, every, kv_shape_.kv_heads);
  PackedLayerInput layer_input = {
      .x = x, .x_width = 2 * hidden_, .residual = residual, .rows = &rows};
  layer_input.cos = cos_.data();
  layer_input.sin = sin_.data();
  for (size_t i = 0; i < layers_.size(); ++i) {
    const bool last = i + 1 == layers_.size();
    if (i > 0) {
      std::swap(z, residual);
      input_norms_[i].Run(residual, hidden_, count, x, hidden_);
      layer_input.x_width = hidden_;
      layer_input.residual = residual;
    }
    layer_input.chosen = last ? absl::Span<const int64_t>(rows.wanted()) : every;
    layer_input.plan = last ? &last_plan_ : &plan_;
    layers_[i].Run(layer_input, rope_, products, kv, z);
  }
  z_at_ = z;
}

const std::byte* PackedNet::Run(const NetInput& input, KvPages& kv,
                                std::vector<StepOutput>& outputs) {
  AERIE_CHECK(pool_ != nullptr) << "no threads have been started";
  pool_->Use(ThreadsOf(input.rows));
  const ProductRunner products(*pool_);
  GatherHidden(input, products);
  RunLayers(input, products, kv);
  const auto wanted = static_cast<int64_t>(input.rows.wanted().size());
  if (wanted == 0) return nullptr;
  float* const normed = normed_.Get(wanted * hidden_);
  final_norm_.Run(z_at_, hidden_, wanted, normed, hidden_);
  Judge(input, normed, outputs);
  return reinterpret_cast<const std::byte*>(norm_output_ ? normed : z_at_);
}

}  // namespace aerie
