// Loading, memory, and the course of a pass; cuda_fuse.cc has what comes before its kernels,
// cuda_pass.cc these.
#include "server/model/cuda_net.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "server/model/top_k.h"

namespace aerie {
namespace {

// Rows for which memory is got at the start.
constexpr int64_t kPooledRows = 64;
constexpr int32_t kPooledTopK = 16;
// More rows than this are busy for longer than it takes to start their kernels.
constexpr int64_t kMostRecordedRows = 64;
// Each is some kilobytes of the driver's; what is beyond is begun anew.
constexpr size_t kMostRecordings = 128;

KvElement KvElementOf(DeviceElement element) {
  return element == DeviceElement::kFloat32 ? KvElement::kFloat32 : KvElement::kBFloat16;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaNet>> CudaNet::Load(const Checkpoint& checkpoint,
                                                       DeviceElement element,
                                                       std::unique_ptr<Device> device) {
  WeightLoader loader(checkpoint, CudaWeights::LoadedAs(element));
  std::unique_ptr<CudaNet> net(new CudaNet(loader, checkpoint, element, std::move(device)));
  AERIE_RETURN_IF_ERROR(loader.status());
  return net;
}

CudaNet::CudaNet(WeightLoader& loader, const Checkpoint& checkpoint, DeviceElement element,
                 std::unique_ptr<Device> device)
    : device_(std::move(device)),
      kv_shape_(KvShapeOf(loader.spec(), KvElementOf(element))),
      hidden_(loader.spec().hidden_size.value),
      heads_(loader.spec().num_heads.value),
      epsilon_(static_cast<float>(loader.spec().rms_norm_eps.value)),
      softmax_scale_(static_cast<float>(loader.spec().softmax_scale.value)),
      norm_before_residual_(loader.spec().norm_before_residual.value),
      norm_output_(loader.spec().norm_output.value),
      interleaved_(loader.spec().rope.interleaved.value),
      rope_(loader.spec().rope),
      embedding_(loader.Embedding()),
      draft_to_target_(checkpoint.draft_to_target),
      weights_(loader, element, *device_),
      pages_(*device_, MemoryKind::kDevice),
      inputs_(*device_) {
  for (DeviceMemory* const memory :
       {&aux_, &fused_, &x_, &residual_, &z_, &qkv_, &attended_, &normed_, &gated_, &scores_,
        &candidates_, &chunk_sums_, &partials_, &result_})
    *memory = DeviceMemory(*device_, MemoryKind::kDevice);
  for (DeviceMemory* const memory : {&aux_host_, &result_host_, &scores_host_})
    *memory = DeviceMemory(*device_, MemoryKind::kPinned);
  const int32_t top_k = std::min(kPooledTopK, static_cast<int32_t>(draft_to_target_.size()));
  Reserve({kPooledRows, 0, kPooledRows, 1, top_k});
}

std::string CudaNet::name() const {
  const DeviceTraits& traits = device_->traits();
  return absl::StrCat(
      "own kernels, CUDA, ", traits.name, " (", traits.major, ".", traits.minor, "), ",
      traits.gemm.empty() ? absl::StrCat("no cuBLAS: ", traits.no_gemm) : traits.gemm);
}

void CudaNet::AttachStore(const KvStore& store) {
  store_ = store;
  pages_.Reserve<std::byte>(store.num_pages * store.page_bytes);
}

void CudaNet::CopyPage(KvPages&, PageId from, PageId to) {
  AERIE_CHECK(from >= 0 && from < store_.num_pages && to >= 0 && to < store_.num_pages &&
              from != to)
      << "page " << from << " to " << to << " of " << store_.num_pages;
  try {
    auto* const pages = pages_.Get<std::byte>();
    device_->CopyWithin(pages + to * store_.page_bytes, pages + from * store_.page_bytes,
                        store_.page_bytes);
  } catch (const DeviceError& error) {
    if (!pending_.has_value()) pending_ = error;
  }
}

bool CudaNet::Reserve(const PassShape& shape) {
  const int64_t rows = shape.rows, wanted = shape.wanted, hidden = hidden_;
  const int64_t head_dim = kv_shape_.key_dim, attended = heads_ * head_dim;
  const int64_t vocab = weights_.output.channels, chunks = RankChunks(vocab);
  const int64_t result = StatesAt(wanted, shape.top_k) + wanted * state_bytes();
  int64_t widest = 0;
  for (const CudaLayer& layer : weights_.layers)
    widest = std::max(widest, layer.gate_up.channels / 2);
  bool moved = false;
  const auto reserve = [&moved](DeviceMemory& memory, int64_t floats) {
    moved = memory.Reserve<float>(floats) || moved;
  };
  reserve(fused_, shape.extend_rows * hidden);
  reserve(x_, rows * 2 * hidden);
  reserve(residual_, rows * hidden);
  reserve(z_, rows * hidden);
  reserve(qkv_, rows * (attended + 2 * kv_shape_.kv_heads * head_dim));
  reserve(attended_, rows * attended);
  reserve(normed_, rows * hidden);
  reserve(gated_, rows * widest);
  reserve(scores_, wanted * vocab);
  reserve(candidates_, 2 * wanted * chunks * shape.top_k);
  reserve(chunk_sums_, 4 * wanted * chunks);
  reserve(partials_, shape.splits == 1 ? 0 : rows * heads_ * shape.splits * (head_dim + 2));
  reserve(result_, result / 4);
  result_host_.Reserve<float>(result / 4);
  return moved;
}

void CudaNet::ForgetRecordings() {
  if (recordings_.empty()) return;
  recordings_.clear();
  device_->ForgetRecordings();
}

void CudaNet::Replay(const PassShape& shape) {
  const auto [found, first] = recordings_.try_emplace(shape);
  if (first) return Launch(shape);
  if (!found->second.has_value()) {
    found->second = device_->Record([&] { Launch(shape); });
  }
  device_->Replay(*found->second);
  ++replays_;
}

const std::byte* CudaNet::Run(const NetInput& input, KvPages&, std::vector<StepOutput>& outputs) {
  if (pending_.has_value()) throw *std::exchange(pending_, std::nullopt);
  const auto vocab = static_cast<int32_t>(draft_to_target_.size());
  const bool ranked = !input.tap && input.top_k <= kMaxRanked;
  PassShape shape = {.rows = input.rows.count(),
                     .wanted = static_cast<int64_t>(input.rows.wanted().size()),
                     .top_k = ranked ? input.top_k : 0};
  for (const StepSequence& part : input.batch) shape.extend_rows += part.aux.rows();
  FindProbes(input);
  bool moved = inputs_.Bring(input,
                             {.rows = shape.rows,
                              .extend_rows = shape.extend_rows,
                              .wanted = shape.wanted,
                              .hidden = hidden_,
                              .pairs = rope_.pairs(),
                              .views_of_all = weights_.layers.size() > 1},
                             store_.page_rows, rope_, embedding_, probes_);
  shape.splits = inputs_.splits();
  moved = Reserve(shape) || moved;
  if (moved || recordings_.size() >= kMostRecordings) ForgetRecordings();
  if (shape.extend_rows > 0) Fuse(input, shape.extend_rows);
  if (recording_ && ranked && shape.extend_rows == 0 && shape.rows <= kMostRecordedRows) {
    Replay(shape);
  } else {
    Launch(shape);
  }
  if (shape.wanted == 0) {
    device_->Synchronize();  // the pinned memory is written again
    return nullptr;
  }
  const int64_t states_at = StatesAt(shape.wanted, shape.top_k);
  auto* const result = result_host_.Get<std::byte>();
  device_->CopyOut(result, result_.Get<std::byte>(), states_at + shape.wanted * state_bytes());
  if (!ranked) {
    scores_host_.Reserve<float>(shape.wanted * vocab);
    device_->CopyOut(scores_host_.Get<float>(), scores_.Get<float>(),
                     shape.wanted * vocab * int64_t{sizeof(float)});
  }
  device_->Synchronize();
  if (ranked) {
    JudgeRanked(input, outputs);
  } else {
    JudgeScores(input, outputs);
  }
  return result + states_at;
}

}  // namespace aerie
