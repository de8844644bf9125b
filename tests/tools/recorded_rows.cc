#include "tests/tools/recorded_rows.h"

#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

std::vector<int32_t> Int32s(const TensorSpan* tensor) {
  std::vector<int32_t> values;
  if (tensor == nullptr) return values;
  values.resize(tensor->bytes.size() / sizeof(int32_t));
  std::memcpy(values.data(), tensor->bytes.data(), values.size() * sizeof(int32_t));
  return values;
}

absl::StatusOr<DraftTree> ReadTree(const SafetensorsFile& file) {
  const TensorSpan* const tokens = file.Find("tree_tokens");
  const TensorSpan* const parents = file.Find("tree_parents");
  DraftTree tree;
  const auto fits = [](const TensorSpan* tensor) {
    return tensor == nullptr || (tensor->type == TensorType::kI32 && tensor->shape.size() == 1);
  };
  bool sound = fits(tokens) && fits(parents);
  if (sound) {
    tree.tokens = Int32s(tokens);
    tree.parents = Int32s(parents);
    sound = tree.tokens.size() == tree.parents.size();
  }
  for (size_t i = 0; sound && i < tree.parents.size(); ++i)
    sound = tree.parents[i] >= 0 && tree.parents[i] <= static_cast<int32_t>(i);
  if (sound) return tree;
  return absl::InvalidArgumentError(
      absl::StrCat(file.path(), " holds tree_tokens ", tokens ? tokens->Describe() : "missing",
                   " and tree_parents ", parents ? parents->Describe() : "missing",
                   "; expected both or none, I32 [nodes], every parent in front of its child; "
                   "write them again"));
}

}  // namespace

absl::StatusOr<Recording> ReadRecording(const SafetensorsFile& file, int64_t width, int32_t vocab) {
  const TensorSpan* const aux = file.Find("aux");
  const TensorSpan* const tokens = file.Find("tokens");
  if (aux == nullptr || tokens == nullptr || aux->shape.size() != 2 || aux->shape[1] != width ||
      tokens->type != TensorType::kI32 || tokens->shape != std::vector<int64_t>{aux->shape[0]} ||
      tokens->shape[0] < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.path(), " holds aux ", aux ? aux->Describe() : "missing", " and tokens ",
                     tokens ? tokens->Describe() : "missing", "; expected aux [rows, ", width,
                     "] and tokens I32 [rows], at least one row; record them again"));
  }
  const std::map<TensorType, DType> types = {{TensorType::kF32, DType::kF32},
                                             {TensorType::kF16, DType::kF16},
                                             {TensorType::kBF16, DType::kBF16}};
  const auto type = types.find(aux->type);
  if (type == types.end()) {
    return absl::InvalidArgumentError(absl::StrCat(file.path(), " holds aux ", aux->Describe(),
                                                   "; expected F32, F16 or BF16; convert it"));
  }
  Recording recording;
  recording.tokens = Int32s(tokens);
  AERIE_ASSIGN_OR_RETURN(recording.tree, ReadTree(file));
  for (const std::vector<int32_t>& some : {recording.tokens, recording.tree.tokens}) {
    for (const int32_t token : some) {
      if (token < 0 || token >= vocab) {
        return absl::InvalidArgumentError(absl::StrCat(file.path(), " holds token ", token,
                                                       "; expected 0..", vocab - 1,
                                                       "; give the target that was recorded"));
      }
    }
  }
  AERIE_ASSIGN_OR_RETURN(recording.aux,
                         HiddenRows::Create(type->second, aux->shape[0], width, aux->bytes));
  return recording;
}

}  // namespace aerie
