#include "server/verify/target_tables.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/safetensors/mapped_file.h"
#include "common/status_macros.h"
#include "server/checkpoint/borrowed_tensors.h"
#include "server/checkpoint/config_view.h"

namespace aerie {
namespace {

constexpr size_t kMaxConfigBytes = 4'000'000;

std::optional<DType> FloatTypeOf(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return DType::kF32;
    case TensorType::kF16:
      return DType::kF16;
    case TensorType::kBF16:
      return DType::kBF16;
    default:
      return std::nullopt;
  }
}

// The weights of the norm behind the last layer: norms of layers have ".layers." in their names.
std::vector<float> FindNorm(const WeightsFolder& weights, int32_t hidden_size) {
  std::vector<float> found;
  for (const TensorSpan& tensor : weights.tensors()) {
    const bool named = tensor.name == "norm.weight" || absl::EndsWith(tensor.name, ".norm.weight");
    const std::optional<DType> dtype = FloatTypeOf(tensor.type);
    if (!named || absl::StrContains(tensor.name, "layers.") || !dtype.has_value() ||
        tensor.shape != std::vector<int64_t>{hidden_size}) {
      continue;
    }
    if (!found.empty()) return {};  // of which model, nobody knows
    const auto row = HiddenRows::Create(*dtype, 1, hidden_size, tensor.bytes);
    if (!row.ok()) return {};
    found.resize(hidden_size);
    row->CopyToFloat(absl::MakeSpan(found));
  }
  return found;
}

double Norm(absl::Span<const float> row) {
  double sum = 0.0;
  for (const float value : row) sum += double{value} * value;
  return std::sqrt(sum);
}

double Cosine(absl::Span<const float> a, absl::Span<const float> b) {
  double product = 0.0;
  for (size_t i = 0; i < a.size(); ++i) product += double{a[i]} * b[i];
  return product / (Norm(a) * Norm(b));
}

// Calls `use` with some rows of a tensor, spread over the recording, and the tokens at their
// positions.
template <typename Use>
void ForSomeRows(const CaptureSet& captures, int32_t tensor, Use use) {
  constexpr size_t kSequences = 8;
  constexpr int64_t kRowsEach = 8;
  std::vector<float> row(captures.hidden_size);
  for (size_t s = 0; s < std::min(kSequences, captures.sequences.size()); ++s) {
    const CaptureSequence& sequence = captures.sequences[s];
    const int64_t rows = std::min(kRowsEach, sequence.length());
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t position = i * sequence.length() / rows;
      CopyState(sequence, tensor, position, absl::MakeSpan(row));
      use(sequence.tokens[position], absl::MakeConstSpan(row));
    }
  }
}

// Most rows must agree, not all: a few may be odd for reasons of their own.
bool Mostly(int64_t agreeing, int64_t rows) { return rows > 0 && agreeing * 10 >= rows * 9; }

std::vector<float> NormedRow(const TargetTables& tables, absl::Span<const float> row) {
  const double length = Norm(row);
  const double scale =
      1.0 / std::sqrt(length * length / static_cast<double>(row.size()) + tables.norm_epsilon);
  std::vector<float> normed(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    normed[i] = static_cast<float>(row[i] * scale * tables.norm_weight[i]);
  }
  return normed;
}

// The target's output matrix. Nothing hangs on it alone, so its absence is no complaint.
std::optional<HiddenRows> FindOutput(const TargetTables& tables) {
  if (tables.spec.ties_embeddings) return std::nullopt;
  Complaints ignored;
  const auto output = BorrowOutput(*tables.weights, tables.spec, "", ignored);
  if (!output.has_value()) return std::nullopt;
  const auto rows = HiddenRows::Create(*FloatTypeOf(output->tensor.type), tables.spec.vocab_size,
                                       tables.spec.hidden_size, output->tensor.bytes);
  return rows.ok() ? std::optional(*rows) : std::nullopt;
}

// Adds a tensor whose rows `make` computes from sequence and position.
template <typename Make>
void AddMade(CaptureTensor tensor, Make make, CaptureSet& captures) {
  captures.tensors.push_back(std::move(tensor));
  const int64_t width = captures.hidden_size;
  for (CaptureSequence& sequence : captures.sequences) {
    std::vector<float>& values = captures.made.emplace_back(sequence.length() * width);
    for (int64_t position = 0; position < sequence.length(); ++position) {
      make(sequence, position, absl::MakeSpan(values).subspan(position * width, width));
    }
    sequence.tensors.push_back(ViewFloats(values, width));
  }
}

}  // namespace

absl::StatusOr<TargetTables> LoadTargetTables(const std::string& folder,
                                              const std::string& embedding_key) {
  AERIE_ASSIGN_OR_RETURN(
      const std::string text,
      ReadSmallFile(std::filesystem::path(folder) / "config.json", kMaxConfigBytes));
  AERIE_ASSIGN_OR_RETURN(WeightsFolder opened, WeightsFolder::Open(folder));
  TargetTables tables;
  tables.weights = std::make_shared<const WeightsFolder>(std::move(opened));
  Complaints complaints;
  tables.spec = ReadTargetSpec(text, complaints).value_or(TargetSpec());
  const ConfigView config(text, "target's config.json", complaints);
  const bool nested = config.Has("text_config.model_type");
  tables.model_type = config.String(nested ? "text_config.model_type" : "model_type").value_or("");
  for (const char* key : {"rms_norm_eps", "text_config.rms_norm_eps"}) {
    if (const auto epsilon = config.Number(key)) tables.norm_epsilon = *epsilon;
  }
  for (const char* key : {"rope_theta", "rope_parameters.rope_theta", "text_config.rope_theta"}) {
    if (!tables.rope_theta.has_value()) tables.rope_theta = config.Number(key);
  }
  AERIE_RETURN_IF_ERROR(complaints.ToStatus(absl::StrCat("target ", folder)));

  const auto embedding = BorrowEmbedding(*tables.weights, tables.spec, embedding_key, complaints);
  if (embedding.has_value()) {
    AERIE_ASSIGN_OR_RETURN(
        tables.embedding,
        HiddenRows::Create(*FloatTypeOf(embedding->tensor.type), tables.spec.vocab_size,
                           tables.spec.hidden_size, embedding->tensor.bytes));
  } else {
    tables.limits.push_back(absl::StrCat("the embedding was not tried as a capture: ",
                                         absl::StrJoin(complaints.list(), "; ")));
  }
  tables.output = FindOutput(tables);
  // Gemma's norms multiply by one plus the weight.
  if (!absl::StartsWith(tables.model_type, "gemma")) {
    tables.norm_weight = FindNorm(*tables.weights, tables.spec.hidden_size);
  }
  if (tables.norm_weight.empty()) {
    tables.limits.push_back(
        "the target's final norm was not tried: its folder has no one norm.weight of the right "
        "width that is used as it is");
  }
  return tables;
}

ValueFinding FindByValue(const CaptureSet& captures, int32_t tensor, const TargetTables& tables) {
  // Half precision rounds by 0.4 %; a scaled embedding keeps its direction.
  constexpr double kSameDirection = 0.999;
  constexpr double kSameSize = 0.02;
  int64_t rows = 0;
  int64_t embedded = 0;
  int64_t normed = 0;
  std::vector<float> other(captures.hidden_size);
  ForSomeRows(captures, tensor, [&](int32_t token, absl::Span<const float> row) {
    ++rows;
    if (tables.embedding.has_value() && token >= 0 && token < tables.embedding->rows()) {
      tables.embedding->Slice(token, 1).CopyToFloat(absl::MakeSpan(other));
      embedded += Cosine(row, other) > kSameDirection ? 1 : 0;
    }
    if (tables.norm_weight.empty()) return;
    // x / rms(x) * w, divided by w, has a root mean square of 1.
    double sum = 0.0;
    int64_t used = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      if (std::abs(tables.norm_weight[i]) < 1e-3f) continue;
      const double value = double{row[i]} / tables.norm_weight[i];
      sum += value * value;
      ++used;
    }
    const double rms = std::sqrt(sum / static_cast<double>(std::max<int64_t>(1, used)));
    normed += std::abs(rms - 1.0) < kSameSize ? 1 : 0;
  });
  if (Mostly(embedded, rows)) return ValueFinding::kEmbedding;
  if (Mostly(normed, rows)) return ValueFinding::kFinalNorm;
  return ValueFinding::kUnknown;
}

void AddTargetTensors(const TargetTables& tables, CaptureSet& captures,
                      std::vector<std::string>& limits) {
  limits.insert(limits.end(), tables.limits.begin(), tables.limits.end());
  bool has_embedding = false;
  bool has_norm = false;
  const int32_t recorded = static_cast<int32_t>(captures.tensors.size());
  for (int32_t tensor = 0; tensor < recorded; ++tensor) {
    const ValueFinding finding = FindByValue(captures, tensor, tables);
    has_embedding = has_embedding || finding == ValueFinding::kEmbedding;
    has_norm = has_norm || finding == ValueFinding::kFinalNorm;
  }
  if (tables.embedding.has_value() && !has_embedding) {
    AddMade(
        {"target.embedding", "the target's table", TensorClaim{TensorClaim::Kind::kEmbedding},
         CaptureTensor::Origin::kTargetEmbedding, -1},
        [&](const CaptureSequence& sequence, int64_t position, absl::Span<float> out) {
          tables.embedding->Slice(sequence.tokens[position], 1).CopyToFloat(out);
        },
        captures);
  }
  if (tables.norm_weight.empty() || has_norm) return;
  const auto last = captures.FindClaim({TensorClaim::Kind::kBoundary, tables.spec.num_layers});
  if (!last.has_value()) {
    limits.push_back(absl::StrCat(
        "the final norm was not tried as a capture: the recording has neither it nor a tensor that "
        "claims to be boundary ",
        tables.spec.num_layers));
    return;
  }
  std::vector<float> row(captures.hidden_size);
  AddMade(
      {absl::StrCat("target.norm(", captures.tensors[*last].name, ")"),
       "the target's final norm applied", TensorClaim{TensorClaim::Kind::kFinalNorm},
       CaptureTensor::Origin::kTargetNorm, *last},
      [&](const CaptureSequence& sequence, int64_t position, absl::Span<float> out) {
        CopyState(sequence, *last, position, absl::MakeSpan(row));
        const std::vector<float> normed = NormedRow(tables, row);
        std::copy(normed.begin(), normed.end(), out.begin());
      },
      captures);
}

}  // namespace aerie
