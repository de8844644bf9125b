#include "server/checkpoint/borrowed_tensors.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace aerie {
namespace {

constexpr char kEmbedding[] = "embed_tokens.weight";
constexpr char kOutput[] = "lm_head.weight";

std::vector<TensorSpan> WithSuffix(const WeightsFolder& weights, absl::string_view suffix) {
  std::vector<TensorSpan> found;
  for (const TensorSpan& tensor : weights.tensors()) {
    if (tensor.name == suffix || absl::EndsWith(tensor.name, absl::StrCat(".", suffix))) {
      found.push_back(tensor);
    }
  }
  return found;
}

std::string Names(const std::vector<TensorSpan>& tensors) {
  if (tensors.empty()) return "";
  return absl::StrCat(
      " (",
      absl::StrJoin(tensors, ", ",
                    [](auto* out, const TensorSpan& tensor) { absl::StrAppend(out, tensor.name); }),
      ")");
}

// The one of the target's shape, or nothing with a complaint.
std::optional<BorrowedTensor> Checked(const TensorSpan& tensor, const TargetSpec& target,
                                      absl::string_view what, Complaints& complaints) {
  const bool is_float = tensor.type == TensorType::kF32 || tensor.type == TensorType::kF16 ||
                        tensor.type == TensorType::kBF16;
  if (is_float && tensor.shape == std::vector<int64_t>{target.vocab_size, target.hidden_size}) {
    return BorrowedTensor{tensor, absl::StrCat("target's tensor ", tensor.name)};
  }
  complaints.Add(absl::StrCat("the target's ", what, " ", tensor.name, " is ", tensor.Describe(),
                              "; expected F32, F16 or BF16 [", target.vocab_size, ", ",
                              target.hidden_size,
                              "] by the target's config.json; use an unquantised copy of the right "
                              "target"));
  return std::nullopt;
}

}  // namespace

std::optional<BorrowedTensor> BorrowEmbedding(const WeightsFolder& weights,
                                              const TargetSpec& target, const std::string& key,
                                              Complaints& complaints) {
  std::vector<TensorSpan> found;
  if (key.empty()) {
    found = WithSuffix(weights, kEmbedding);
  } else {
    for (const TensorSpan& tensor : weights.tensors()) {
      if (tensor.name == key) found.push_back(tensor);
    }
  }
  if (found.size() == 1) return Checked(found[0], target, "embedding", complaints);
  const std::string wanted = key.empty() ? absl::StrCat("*.", kEmbedding) : key;
  complaints.Add(absl::StrCat("the target has ", found.size(), " tensors named ", wanted,
                              Names(found),
                              "; expected one; name the token embedding with --embedding-key"));
  return std::nullopt;
}

std::optional<BorrowedTensor> BorrowOutput(const WeightsFolder& weights, const TargetSpec& target,
                                           const std::string& embedding_key,
                                           Complaints& complaints) {
  const std::vector<TensorSpan> found = WithSuffix(weights, kOutput);
  if (found.size() == 1) return Checked(found[0], target, "output matrix", complaints);
  if (found.empty() && target.ties_embeddings) {
    auto embedding = BorrowEmbedding(weights, target, embedding_key, complaints);
    if (embedding.has_value()) {
      absl::StrAppend(&embedding->source, ", to which the target ties its output");
    }
    return embedding;
  }
  complaints.Add(absl::StrCat(
      "the head has no lm_head.weight and the target has ", found.size(), " tensors named *.",
      kOutput, Names(found),
      "; expected one in either; give the folder of the whole target, or export the head with its "
      "own"));
  return std::nullopt;
}

}  // namespace aerie
