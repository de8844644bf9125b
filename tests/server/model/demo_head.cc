#include "tests/server/model/demo_head.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

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

namespace {

// What is free of one model's pages and slots. Pages are given out in no order, so that a mix-up
// shows.
struct Supply {
  int32_t open = 0;
  std::vector<PageId> pages;
  std::vector<SlotId> slots;
  SlotId next_slot = 0;
};

Supply& SupplyOf(const DraftModel& model) {
  static auto* const supplies = new std::map<const DraftModel*, Supply>();
  Supply& supply = (*supplies)[&model];
  if (supply.open == 0) {  // perhaps another model at the same address
    supply = Supply();
    const int32_t count = std::min(model.kv_store().num_pages, 4096);
    for (int32_t i = 0; i < count; ++i) supply.pages.push_back(i);
    std::shuffle(supply.pages.begin(), supply.pages.end(), std::mt19937(count));
  }
  return supply;
}

}  // namespace

OpenedSlot::OpenedSlot(DraftModel& model) : model_(model) {
  Supply& supply = SupplyOf(model);
  ++supply.open;
  if (supply.slots.empty()) supply.slots.push_back(supply.next_slot++);
  id_ = supply.slots.back();
  supply.slots.pop_back();
}

OpenedSlot::~OpenedSlot() {
  Supply& supply = SupplyOf(model_);
  --supply.open;
  supply.slots.push_back(id_);
  for (const PageId page : pages_) {
    if (page != kNoPage) supply.pages.push_back(page);
  }
  model_.ReleaseSlot(id_);
}

void OpenedSlot::StartAt(int64_t row, int64_t first) {
  shift_ = row - first;
  length_ = visible_.start = row;
  pages_.assign(row / model_.kv_store().page_rows, kNoPage);
}

void OpenedSlot::ForkOf(const OpenedSlot& other, int64_t length) {
  MakeRoom(length);
  for (size_t i = 0; i < pages_.size(); ++i) model_.CopyPage(other.pages_[i], pages_[i]);
  length_ = length;
  visible_ = other.visible_;
}

void OpenedSlot::MakeRoom(int64_t rows) {
  const int64_t page_rows = model_.kv_store().page_rows;
  Supply& supply = SupplyOf(model_);
  while (static_cast<int64_t>(pages_.size()) * page_rows < rows) {
    AERIE_CHECK(!supply.pages.empty()) << "a test that needs this many pages needs another supply";
    pages_.push_back(supply.pages.back());
    supply.pages.pop_back();
  }
}

StepSequence OpenedSlot::ExtendRows(const RecordedSequence& sequence, int64_t count,
                                    Outputs outputs) {
  MakeRoom(length_ + count);
  drafted_ = 0;
  return {.slot = id_,
          .pages = pages_,
          .length = length_,
          .visible = visible_,
          .tokens = sequence.RowTokens(length_ - shift_, count),
          .aux = sequence.RowAux(length_ - shift_, count),
          .parents = {},
          .outputs = outputs,
          .probes = {}};
}

StepSequence OpenedSlot::DraftRows(std::vector<int32_t> tokens, std::vector<int32_t> parents) {
  tokens_ = std::move(tokens);
  parents_ = std::move(parents);
  drafted_ += static_cast<int32_t>(tokens_.size());
  MakeRoom(length_ + drafted_);
  return {.slot = id_,
          .pages = pages_,
          .length = length_,
          .visible = visible_,
          .tokens = tokens_,
          .aux = HiddenRows(),
          .parents = parents_,
          .outputs = Outputs::kEvery,
          .probes = {}};
}

std::optional<ScoredToken> OpenedSlot::Extend(const RecordedSequence& sequence, int64_t count,
                                              bool wants_output) {
  const StepSequence rows =
      ExtendRows(sequence, count, wants_output ? Outputs::kLast : Outputs::kNone);
  const auto outputs = ValueOrDie(model_.Step({&rows, 1}, 1));
  Took(count);
  AERIE_CHECK(outputs.size() == 1 && outputs[0].rows.size() == (wants_output ? 1 : 0));
  return wants_output ? std::optional(outputs[0].rows[0].top.at(0)) : std::nullopt;
}

ScoredToken OpenedSlot::Draft(int32_t token) {
  const StepSequence row = DraftRow(token);
  return ValueOrDie(model_.Step({&row, 1}, 1)).at(0).rows.at(0).top.at(0);
}

std::vector<ScoredToken> OpenedSlot::Chain(ScoredToken first, int32_t k) {
  std::vector<ScoredToken> chain = {first};
  while (static_cast<int32_t>(chain.size()) < k) chain.push_back(Draft(chain.back().token));
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
