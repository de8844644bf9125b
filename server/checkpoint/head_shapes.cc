// Whether a head's tensors are those that its settings ask for, and in the right shapes.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/checkpoint/head_tensor_table.h"
#include "server/checkpoint/head_tensors.h"

namespace aerie {
namespace {

// Of one layer.
std::vector<HeadTensor> RolesOfLayer(const HeadSizes& sizes, bool first) {
  using R = HeadTensor;
  std::vector<R> roles = {R::kInputNorm, R::kAttentionOutput,  R::kGate, R::kUp,
                          R::kDown,      R::kPostAttentionNorm};
  const auto add = [&roles](bool wanted, std::initializer_list<R> more) {
    if (wanted) roles.insert(roles.end(), more);
  };
  add(first, {R::kHiddenNorm});
  add(!sizes.latent || !sizes.q_lora, {R::kQuery});
  add(!sizes.latent, {R::kKey, R::kValue});
  add(sizes.latent, {R::kKvDown, R::kKvDownNorm, R::kKvUp});
  add(sizes.latent && sizes.q_lora, {R::kQueryDown, R::kQueryDownNorm, R::kQueryUp});
  add(sizes.qkv_bias, {R::kQueryBias, R::kKeyBias, R::kValueBias});
  add(sizes.output_bias, {R::kAttentionOutputBias});
  add(sizes.qk_norm, {R::kQueryNorm, R::kKeyNorm});
  return roles;
}

std::set<TensorKey> Wanted(const HeadSizes& sizes) {
  std::set<TensorKey> keys = {HeadTensor::kFinalNorm};
  if (sizes.fc) keys.insert(HeadTensor::kFc);
  if (sizes.fc_input_norm) keys.insert(HeadTensor::kFcInputNorm);
  for (int64_t i = 0; i < sizes.fc_norms; ++i) {
    keys.insert({HeadTensor::kFcNorm, static_cast<int32_t>(i)});
  }
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    for (const HeadTensor role : RolesOfLayer(sizes, layer == 0)) {
      keys.insert({role, static_cast<int32_t>(layer)});
    }
  }
  return keys;
}

// Those that may be borrowed or are not needed by every head; who looks for them says so.
bool IsOptional(HeadTensor role) {
  return role == HeadTensor::kOutput || role == HeadTensor::kEmbedding ||
         role == HeadTensor::kDraftToTarget || role == HeadTensor::kTargetToDraft;
}

void CheckScale(const TensorSpan& weight, const TensorSpan& scale, Complaints& complaints) {
  const int64_t rows = weight.shape[0];
  using Shape = std::vector<int64_t>;
  for (const Shape& good : {Shape{}, Shape{1}, Shape{1, 1}, Shape{rows}, Shape{rows, 1}}) {
    if (scale.shape == good) return;
  }
  complaints.Add(
      absl::StrCat("tensor ", scale.name, " is ", scale.Describe(), " for a weight ",
                   weight.Describe(), "; expected one number or one for each of the ", rows,
                   " rows; use a head without scales for blocks, which are not done here"));
}

}  // namespace

void CheckHeadParts(const HeadTensors& tensors, const HeadSizes& sizes, Complaints& complaints) {
  const std::set<TensorKey> wanted = Wanted(sizes);
  std::vector<std::string> missing, surplus;
  for (const TensorKey& key : wanted) {
    if (tensors.stored.count(key) == 0) missing.push_back(PlainName(key));
  }
  for (const auto& [key, name] : tensors.stored) {
    if (wanted.count(key) == 0 && !IsOptional(key.role)) surplus.push_back(name);
  }
  if (!missing.empty()) {
    const bool no_fc = sizes.fc && tensors.stored.count(HeadTensor::kFc) == 0;
    complaints.Add(absl::StrCat("the weights lack ", absl::StrJoin(missing, ", "),
                                "; expected every tensor of a head with ", sizes.layers,
                                sizes.layers == 1 ? " layer" : " layers", " and these settings; ",
                                no_fc ? "without fc.weight this is no EAGLE-3 head: check the path"
                                      : "fetch the head again or export it whole"));
  }
  if (!surplus.empty()) {
    complaints.Add(absl::StrCat("the weights hold ", absl::StrJoin(surplus, ", "),
                                ", for which the other tensors and config.json leave no use; "
                                "expected none; check that these files belong together, since a "
                                "tensor that goes unused makes a head draft badly"));
  }
}

void CheckHeadShapes(const HeadTensors& tensors, const HeadSizes& sizes, Complaints& complaints) {
  for (const auto& [key, tensor] : tensors.weights) {
    const TensorRule& rule = RuleOf(key.role);
    std::vector<int64_t> expected;
    bool known = true;
    for (const auto size : rule.shape) {
      expected.push_back(sizes.*size);
      known = known && sizes.*size != 0;
    }
    if (!known) continue;
    if (rule.twice_in_layer_0 && key.index == 0) expected.back() *= 2;
    if (tensor.shape != expected) {
      complaints.Add(absl::StrCat(
          "tensor ", tensor.name, " is ", tensor.Describe(), "; expected [",
          absl::StrJoin(expected, ", "),
          "] by the other tensors, config.json and the target; the files do not belong together: "
          "check which head and which target are given"));
      continue;
    }
    const auto scale = tensors.scales.find(key);
    if (scale != tensors.scales.end()) CheckScale(tensor, scale->second, complaints);
  }
}

}  // namespace aerie
