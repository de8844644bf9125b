#include "tests/server/model/demo_head.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/check.h"

namespace aerie {
namespace {

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  AERIE_CHECK(value != nullptr) << name << " is not set; CTest sets it; run the test through ctest";
  return value;
}

template <typename T>
T ValueOrDie(absl::StatusOr<T> value) {
  AERIE_CHECK(value.ok()) << std::string(value.status().message());
  return *std::move(value);
}

}  // namespace

std::string SourcePath(const std::string& relative) {
  return absl::StrCat(Variable("AERIE_SOURCE_DIR"), "/", relative);
}

const Checkpoint& DemoCheckpoint() {
  static const auto* const checkpoint = new Checkpoint(
      ValueOrDie(LoadCheckpoint(SourcePath("demo/drafter"), Variable("AERIE_TARGET"))));
  return *checkpoint;
}

std::unique_ptr<DraftModel> LoadDemo(const ModelOptions& options) {
  return ValueOrDie(LoadEagle3Model(DemoCheckpoint(), options));
}

DraftModel& SharedDemo() {
  static DraftModel* const model = LoadDemo().release();
  return *model;
}

absl::Span<const int32_t> RecordedSequence::RowTokens(int64_t first, int64_t count) const {
  AERIE_CHECK(first >= 0 && first + count < static_cast<int64_t>(tokens.size()));
  return absl::MakeSpan(tokens).subspan(first + 1, count);
}

const std::vector<RecordedSequence>& Recording() {
  static const auto* const recording = [] {
    // Static as well: the rows are views of it.
    static const auto* const file = new SafetensorsFile(
        ValueOrDie(SafetensorsFile::Open(SourcePath("tests/golden/eval/recording.safetensors"))));
    std::ifstream json_file(SourcePath("tests/golden/eval/recording.json"));
    const auto json = nlohmann::json::parse(json_file);
    auto* const sequences = new std::vector<RecordedSequence>();
    for (const auto& entry : json.at("sequences")) {
      const int index = entry.at("index");
      const TensorSpan* const tokens = file->Find(absl::StrCat(index, ".tokens"));
      const TensorSpan* const aux = file->Find(absl::StrCat(index, ".aux"));
      AERIE_CHECK(tokens != nullptr && aux != nullptr) << "sequence " << index;
      RecordedSequence& sequence = sequences->emplace_back();
      sequence.prompt_tokens = entry.at("prompt_tokens");
      sequence.tokens.resize(tokens->shape[0]);
      std::memcpy(sequence.tokens.data(), tokens->bytes.data(), tokens->bytes.size());
      sequence.aux =
          ValueOrDie(HiddenRows::Create(DType::kBF16, aux->shape[0], aux->shape[1], aux->bytes));
    }
    return sequences;
  }();
  return *recording;
}

OpenedSlot::OpenedSlot(DraftModel& model) : model_(model), id_(ValueOrDie(model.OpenSlot())) {}

std::optional<ScoredToken> OpenedSlot::Extend(const RecordedSequence& sequence, int64_t count,
                                              bool wants_output) {
  const int64_t first = length();
  const StepSequence rows{id_, first, sequence.RowTokens(first, count),
                          sequence.RowAux(first, count), wants_output};
  const auto outputs = ValueOrDie(model_.Step({&rows, 1}, 1));
  AERIE_CHECK(outputs.size() == 1 && outputs[0].top.size() == (wants_output ? 1 : 0));
  return wants_output ? std::optional(outputs[0].top[0]) : std::nullopt;
}

ScoredToken OpenedSlot::Draft(int32_t token) {
  const StepSequence row{id_, length(), {&token, 1}, HiddenRows(), /*wants_output=*/true};
  return ValueOrDie(model_.Step({&row, 1}, 1)).at(0).top.at(0);
}

std::vector<ScoredToken> OpenedSlot::Chain(ScoredToken first, int32_t k) {
  const int64_t committed = length();
  std::vector<ScoredToken> chain = {first};
  while (static_cast<int32_t>(chain.size()) < k) chain.push_back(Draft(chain.back().token));
  Truncate(committed);
  return chain;
}

std::vector<ScoredToken> DraftAlone(DraftModel& model, const RecordedSequence& sequence,
                                    int64_t slot, int32_t k) {
  OpenedSlot opened(model);
  return opened.Chain(*opened.Extend(sequence, slot + 1, /*wants_output=*/true), k);
}

std::vector<int32_t> TokensOf(const std::vector<ScoredToken>& chain) {
  std::vector<int32_t> tokens;
  for (const ScoredToken& scored : chain) tokens.push_back(scored.token);
  return tokens;
}

}  // namespace aerie
