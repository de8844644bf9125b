// From normed z to scored tokens: the product with the output matrix, whose scores are ranked and
// summed up piece by piece and kept nowhere.
#include <algorithm>
#include <limits>

#include "server/model/packed_net.h"
#include "server/model/top_k.h"

namespace aerie {
namespace {

constexpr int64_t kPiecePanels = ScoreBoard::kChunk / kPanelChannels;

}  // namespace

void PackedNet::Judge(const NetInput& input, const float* normed,
                      std::vector<StepOutput>& outputs) {
  const auto wanted = static_cast<int64_t>(input.rows.wanted().size());
  input_.Set(normed, wanted, hidden_, hidden_, element_);
  questions_.Assign(input.batch, input.rows);
  if (input.tap) {
    JudgeTapped(input, outputs);
  } else {
    JudgeInPieces(input, outputs);
  }
}

// Whoever taps wants to see whole rows.
void PackedNet::JudgeTapped(const NetInput& input, std::vector<StepOutput>& outputs) {
  const int64_t vocab = output_.channels();
  float* const logits = logits_.Get(input_.rows() * vocab);
  ProductRunner(*pool_).Run(
      {{.matrix = &output_, .input = &input_, .out = logits, .out_stride = vocab}});
  for (const Question& asked : questions_.all()) {
    const absl::Span<const float> row(logits + asked.number * vocab, static_cast<size_t>(vocab));
    input.tap(asked.part, row);
    outputs[asked.part].rows[asked.row] = JudgeRow(row, input.top_k, asked.probe, draft_to_target_);
  }
}

void PackedNet::JudgeInPieces(const NetInput& input, std::vector<StepOutput>& outputs) {
  const int64_t rows = input_.rows(), vocab = output_.channels();
  probes_.assign(rows, -1);
  probe_scores_.assign(rows, -std::numeric_limits<float>::infinity());
  for (const Question& asked : questions_.all()) {
    if (asked.probe < 0) continue;
    const auto found =
        std::lower_bound(draft_to_target_.begin(), draft_to_target_.end(), asked.probe);
    if (found != draft_to_target_.end() && *found == asked.probe)
      probes_[asked.number] = found - draft_to_target_.begin();
  }
  board_.Begin(rows, vocab, input.top_k, pool_->in_use());
  pieces_.resize(pool_->threads());
  for (int i = 0; i < pool_->in_use(); ++i) pieces_[i].Get(rows * ScoreBoard::kChunk);
  pool_->Run(board_.chunks(), [&](int64_t chunk, int thread) {
    float* const scores = pieces_[thread].Get(0);
    const int64_t first = chunk * kPiecePanels, first_id = chunk * ScoreBoard::kChunk;
    MultiplyPanels({.matrix = &output_,
                    .input = &input_,
                    .out = scores,
                    .out_stride = ScoreBoard::kChunk,
                    .first_channel = first_id},
                   first, std::min(first + kPiecePanels, output_.panels()));
    for (int64_t row = 0; row < rows; ++row) {
      const float* const own = scores + row * ScoreBoard::kChunk;
      board_.Add(thread, row, chunk, own);
      const int64_t probe = probes_[row] - first_id;
      if (probe >= 0 && probe < ScoreBoard::kChunk) probe_scores_[row] = own[probe];
    }
  });
  for (const Question& asked : questions_.all()) {
    const RowScores scores = board_.Finish(asked.number);
    RowOutput& out = outputs[asked.part].rows[asked.row];
    out.finite = scores.summary.finite;
    if (!out.finite) continue;
    const auto log_prob = [&](float score) {
      return static_cast<float>(score - scores.summary.log_sum_exp);
    };
    out.top.reserve(input.top_k);
    for (int32_t i = 0; i < input.top_k; ++i) {
      const RankedScore& best = scores.best[i];
      out.top.push_back({draft_to_target_[best.id], log_prob(best.score)});
    }
    if (asked.probe >= 0) out.probe_log_prob = log_prob(probe_scores_[asked.number]);
  }
}

}  // namespace aerie
