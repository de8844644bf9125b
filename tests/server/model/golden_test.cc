// The model against numbers that are not its own: logits of a float64 reference, drafts and accept
// lengths that were recorded when the head was trained.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/float8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/model/eagle3_model_internal.h"
#include "tests/server/model/demo_head.h"
#include "tests/testing/status_matchers.h"

namespace aerie {
namespace {

using testing::ElementsAreArray;

template <typename T>
std::vector<T> ValuesOf(const SafetensorsFile& file, const char* name) {
  const TensorSpan* const tensor = file.Find(name);
  std::vector<T> values(tensor->bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

nlohmann::json Expected() {
  std::ifstream file(SourcePath("tests/golden/eval/recording.json"));
  return nlohmann::json::parse(file).at("expected");
}

// float32 sums of 1,700 products keep about 1e-5 of logits near 20; a wrong equation is off by more
// than 1e-1.
constexpr float kTolerance = 1e-4f;

// Ends the tap however the test ends: it writes into a local of the test.
struct TapEnd {
  DraftModel& model;
  ~TapEnd() { SetLogitsTap(model, nullptr); }
};

TEST(GoldenTest, LogitsEqualTheReferenceAtFiveDepths) {
  const auto file = SafetensorsFile::Open(SourcePath("tests/golden/demo_logits.safetensors"));
  ASSERT_THAT(file, IsOk());
  const auto sequences = ValuesOf<int32_t>(*file, "sequence");
  const auto slots = ValuesOf<int32_t>(*file, "slot");
  const auto tokens = ValuesOf<int32_t>(*file, "tokens");
  const auto logits = ValuesOf<float>(*file, "logits");
  const auto log_probs = ValuesOf<float>(*file, "log_probs");
  const size_t depths = file->Find("logits")->shape[1];
  const size_t vocab = file->Find("logits")->shape[2];
  ASSERT_EQ(depths, 5);
  ASSERT_GE(slots.size(), 4);

  DraftModel& model = SharedDemo();
  std::vector<float> seen;
  SetLogitsTap(model, [&seen](size_t, absl::Span<const float> row) {
    seen.insert(seen.end(), row.begin(), row.end());
  });
  const TapEnd tap_end{model};
  float worst = 0.0f;
  for (size_t i = 0; i < slots.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("sequence ", sequences[i], ", slot ", slots[i]));
    seen.clear();
    const auto chain = DraftAlone(model, Recording()[sequences[i]], slots[i], depths);
    EXPECT_THAT(TokensOf(chain), ElementsAreArray(tokens.data() + i * depths, depths));
    ASSERT_EQ(seen.size(), depths * vocab);
    for (size_t j = 0; j < seen.size(); ++j) {
      const float difference = std::abs(seen[j] - logits[i * depths * vocab + j]);
      ASSERT_TRUE(difference <= kTolerance)
          << "depth " << j / vocab + 1 << ", draft id " << j % vocab;
      worst = std::max(worst, difference);
    }
    for (size_t depth = 0; depth < depths; ++depth) {
      EXPECT_NEAR(chain[depth].log_prob, log_probs[i * depths + depth], kTolerance);
    }
  }
  RecordProperty("largest_difference", absl::StrCat(worst));
  std::cout << "largest difference of a logit: " << worst << "\n";
}

TEST(GoldenTest, FirstDraftsAreTheRecordedOnes) {
  const auto drafts = Expected().at("first_drafts");
  ASSERT_EQ(drafts.size(), Recording().size());
  for (size_t i = 0; i < drafts.size(); ++i) {
    const int64_t slot = drafts[i].at("slot");
    ASSERT_EQ(slot, Recording()[i].prompt_tokens - 1);
    const auto expected = drafts[i].at("draft").get<std::vector<int32_t>>();
    EXPECT_THAT(TokensOf(DraftAlone(SharedDemo(), Recording()[i], slot, expected.size())),
                ElementsAreArray(expected))
        << "sequence " << i;
  }
}

// The drafts of `k` tokens at every slot from the prompt's end on; all sequences share the passes.
std::vector<std::vector<std::vector<int32_t>>> DraftEverywhere(
    DraftModel& model, int32_t k, const std::vector<RecordedSequence>& recording = Recording()) {
  std::vector<std::unique_ptr<OpenedSlot>> slots;
  std::vector<std::vector<std::vector<int32_t>>> drafts(recording.size());
  for (const auto& sequence : recording) {
    slots.push_back(std::make_unique<OpenedSlot>(model));
    slots.back()->Extend(sequence, sequence.prompt_tokens - 1, /*wants_output=*/false);
  }
  for (bool any = true; any;) {
    std::vector<size_t> open;
    for (size_t i = 0; i < recording.size(); ++i) {
      if (slots[i]->length() + 1 < static_cast<int64_t>(recording[i].tokens.size()))
        open.push_back(i);
    }
    any = !open.empty();
    std::vector<int32_t> last(recording.size());
    for (int32_t depth = 0; depth < k && any; ++depth) {
      std::vector<StepSequence> batch;
      for (const size_t i : open) {
        if (depth == 0) {
          batch.push_back(slots[i]->ExtendRows(recording[i], 1, Outputs::kLast));
          slots[i]->Took(1);
          drafts[i].emplace_back();
        } else {
          batch.push_back(slots[i]->DraftRow(last[i]));
        }
      }
      const auto outputs = model.Step(batch, 1);
      EXPECT_THAT(outputs, IsOk());
      for (size_t j = 0; j < open.size(); ++j) {
        last[open[j]] = (*outputs)[j].rows[0].top[0].token;
        drafts[open[j]].back().push_back(last[open[j]]);
      }
    }
  }
  return drafts;
}

// Counts as the head's README says.
double AcceptLength(const std::vector<std::vector<std::vector<int32_t>>>& drafts, int32_t k) {
  int64_t accepted = 0, rounds = 0;
  for (size_t i = 0; i < drafts.size(); ++i) {
    const auto& tokens = Recording()[i].tokens;
    const int64_t first = Recording()[i].prompt_tokens - 1;
    // The row at `slot` brings the token at slot + 1; the draft is of slot + 2 and on.
    for (int64_t slot = first; slot + 2 < static_cast<int64_t>(tokens.size());) {
      const std::vector<int32_t>& draft = drafts[i].at(slot - first);
      int64_t kept = 0;
      while (kept < k && slot + 2 + kept < static_cast<int64_t>(tokens.size()) &&
             draft[kept] == tokens[slot + 2 + kept]) {
        ++kept;
      }
      accepted += kept;
      ++rounds;
      slot += kept + 1;
    }
  }
  return 1.0 + static_cast<double>(accepted) / static_cast<double>(rounds);
}

TEST(GoldenTest, AcceptLengthsAreTheRecordedOnes) {
  constexpr int32_t kMax = 6;
  const auto drafts = DraftEverywhere(SharedDemo(), kMax);
  const auto expected = Expected().at("accept_length");
  for (int32_t k = 1; k <= kMax; ++k) {
    const double known = expected.at(absl::StrCat(k));
    const double measured = AcceptLength(drafts, k);
    std::cout << "k=" << k << ": accept length " << measured << ", recorded " << known << "\n";
    EXPECT_NEAR(measured, known, 0.01 * known) << "k = " << k;
  }
}

// Against float32 on the same rows, so that nothing but the rounding of weights and KV counts.
TEST(GoldenTest, TypesThatRoundLoseLessThanOnePercentOfTheAcceptLength) {
  constexpr int32_t kMax = 3;
  const auto exact = DraftEverywhere(SharedDemo(), kMax);
  for (const auto& [name, dtype] :
       {std::pair{"bfloat16", ComputeDType::kBFloat16}, {"int8", ComputeDType::kInt8}}) {
    const auto model = LoadDemo({.dtype = dtype});
    const auto drafts = DraftEverywhere(*model, kMax);
    double loss = 0.0;
    for (int32_t k = 1; k <= kMax; ++k) {
      const double whole = AcceptLength(exact, k), rounded = AcceptLength(drafts, k);
      std::cout << name << ", k=" << k << ": accept length " << rounded << ", float32 " << whole
                << "\n";
      EXPECT_GE(rounded, 0.99 * whole) << name << ", k = " << k;
      loss = std::max(loss, 1.0 - rounded / whole);
    }
    // What tests/benchmarks/run reports.
    RecordProperty(absl::StrCat(name, "_accept_loss"), absl::StrCat(loss));
  }
}

// The recording as a server sees it of a worker that sends fp8 rows.
struct Fp8Recording {
  Fp8Recording() {
    for (const RecordedSequence& sequence : Recording()) {
      const HiddenRows& aux = sequence.aux;
      bytes.push_back(std::make_unique<std::string>(
          DecodeFp8(EncodeFp8(aux), aux.rows(), aux.width()).value()));
      sequences.push_back(sequence);
      sequences.back().aux =
          HiddenRows::Create(DType::kBF16, aux.rows(), aux.width(), *bytes.back()).value();
    }
  }

  std::vector<std::unique_ptr<std::string>> bytes;
  std::vector<RecordedSequence> sequences;
};

TEST(GoldenTest, RowsInFp8LoseLessThanOnePercentOfTheAcceptLength) {
  constexpr int32_t kMax = 3;
  const auto exact = DraftEverywhere(SharedDemo(), kMax);
  const Fp8Recording recording;
  const auto drafts = DraftEverywhere(SharedDemo(), kMax, recording.sequences);
  EXPECT_NE(drafts, exact) << "the rows were not rounded at all";
  for (int32_t k = 1; k <= kMax; ++k) {
    const double whole = AcceptLength(exact, k), rounded = AcceptLength(drafts, k);
    std::cout << "fp8 rows, k=" << k << ": accept length " << rounded << ", bfloat16 " << whole
              << "\n";
    EXPECT_GE(rounded, 0.99 * whole) << "k = " << k;
  }
}

}  // namespace
}  // namespace aerie
