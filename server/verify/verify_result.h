// What aerie-verify found: the one struct behind the table, the JSON and the HTML report. Values
// only.
//
// Candidates are wirings of *recorded tensors*. What a recording calls them is a claim that the
// result judges, so no number here hangs on a label.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace aerie {

enum class Verdict {
  kVerified,      // the declared wiring beats every other candidate, each beyond doubt
  kContradicted,  // another wiring, or another setting, is better beyond doubt
  kUndecided,     // too few rows, or a declared wiring that the recording cannot show
  kEquivalent,    // nothing is better, but the head reads other candidates as well as this one
};

// "verified", "contradicted", "undecided", "equivalent".
absl::string_view VerdictName(Verdict verdict);
// 0, 3, 4, 5. (1: the command line cannot be read; 2: the input is bad.)
int ExitCode(Verdict verdict);

// How a candidate stands to the reference.
enum class Standing {
  kReference,   // itself
  kBetter,      // better beyond doubt, by more than the margin
  kEquivalent,  // within the margin beyond doubt, whether or not a difference shows
  kOpen,        // neither told apart nor equivalent
  kExcluded,    // worse beyond doubt
};

// "reference", "better", "equivalent", "open", "excluded".
absl::string_view StandingName(Standing standing);

// A wiring of recorded tensors.
struct WiringView {
  // Names in the order of concatenation. Made of the target's files: "target.embedding" and
  // "target.norm(NAME)".
  std::vector<std::string> tensors;
  // What the recording says that each is: "boundary 2", "final norm", "embedding", "unlabelled".
  std::vector<std::string> claims;
  // The row with the token of position p + 1 gets the state of position p + shift. 0 is how
  // drafters are trained.
  int32_t shift = 0;
  bool embedding = false;   // uses the target's table
  bool final_norm = false;  // uses a tensor to which the target's final norm was applied

  // "aux_0 | aux_1 | aux_2", with ", states shifted by +1" when they are.
  std::string Name() const;
};

// A paired comparison over the same rows of both, clustered by sequence.
struct PairedTest {
  double difference = 0.0;  // mean log-likelihood of the reference minus the other's, nats a row
  double standard_error = 0.0;  // of it
  double t = 0.0;               // difference / standard_error
  double p_value = 1.0;         // two-sided
  double p_adjusted = 1.0;      // after Holm, over all candidates
  int64_t rows = 0;             // that entered
  int32_t sequences = 0;
};

// Scores along chains of drafts behind many rows. Index 0 is depth 1.
struct DepthScores {
  int64_t starts = 0;  // rows that a chain began behind
  // Fed the true tokens: how often the most likely token is the next one, and the mean
  // log-likelihood of it (of tokens in the draft vocabulary).
  std::vector<double> accuracy;
  std::vector<double> log_likelihood;
  // Fed its own tokens: how often all tokens up to this depth are right.
  std::vector<double> acceptance;
  // 1 + the sum of `acceptance`: tokens a target pass, the bonus token counted.
  double accept_length = 0.0;
};

struct CandidateResult {
  WiringView wiring;
  Standing standing = Standing::kOpen;
  bool declared = false;
  double accuracy = 0.0;             // at depth 1; tokens outside the draft vocabulary are misses
  double mean_log_likelihood = 0.0;  // at depth 1; those rows left out, for all candidates alike
  int64_t rows = 0;                  // scored
  bool coarse = false;               // scored on the coarse rows only, which sufficed
  PairedTest test;                   // against the reference; default for itself
  PairedTest best_test;              // against the best; default for itself
  bool rival = false;                // not told from the best, or the best itself
  std::optional<int64_t> rows_for_3_sigma;  // to tell it from the reference; none: no difference
  std::optional<DepthScores> depths;        // of the reference and the best
};

// One reading of the layer ids that the head's files state.
struct DeclaredReading {
  std::string convention;  // "output-of-layer", ...
  std::string wiring;      // "[2, 15, 27]"
  int32_t candidate = -1;  // index into candidates; -1: the recording cannot show it
  std::string why_not;     // when it cannot: which captures are missing
};

// The best wiring under one setting that differs from the head's files.
struct WhatIf {
  std::string setting;   // "norm_output"
  std::string declared;  // the value in force
  std::string value;     // the value tried
  bool scored = false;
  std::string why_not;  // when it was not
  DepthScores depths;
  PairedTest test;  // the reference is the value in force; log-likelihood over all depths
  bool better = false;
};

enum class LabelVerdict { kSupported, kContradicted, kUntested };
// "supported", "contradicted", "untested".
absl::string_view LabelVerdictName(LabelVerdict verdict);

// What the data say of one label of the recording.
struct LabelResult {
  std::string tensor;
  std::string label;  // the recorder's own words
  std::string claim;  // "boundary 2", ...
  LabelVerdict verdict = LabelVerdict::kUntested;
  std::string reason;
};

// To which tokens the rows of one tensor are most alike: offset o compares row p with the embedding
// of the token at position p + o.
struct TensorAlignment {
  std::string tensor;
  std::vector<double> similarity;  // mean cosine at kAlignmentOffsets
  std::optional<int32_t> peak;     // the offset that stands out beyond doubt
};
inline constexpr int32_t kAlignmentOffsets[] = {-2, -1, 0, 1, 2, 3};

// Whether rows belong to the tokens that they stand beside, by values.
struct Alignment {
  std::vector<TensorAlignment> tensors;
  // The shift at which the token of position p + 1 meets the state of position p; none: values do
  // not tell. Other than 0, the recording is off by so much.
  std::optional<int32_t> shift;
  std::string reason;
};

// How large the rows of a recorded tensor are.
struct TensorProfile {
  std::string tensor;
  std::string claim;
  std::optional<int32_t> boundary;  // of the claim
  // Root mean square of rows, at these quantiles over all rows: 0, 5, 25, 50, 75, 95, 100 %.
  std::vector<double> rms_quantiles;
};

// What was not scored, and by which rule.
struct Pruning {
  bool exhaustive = true;     // every ordered choice was scored at least on the coarse rows
  double possible = 0.0;      // ordered choices times shifts
  int64_t scored_coarse = 0;  // candidates
  int64_t scored_fully = 0;   // of these, on all rows
  int64_t coarse_rows = 0, rows = 0;
  std::string rule;  // in words
};

struct VerifyResult {
  Verdict verdict = Verdict::kUndecided;
  std::string reason;  // one sentence

  std::string drafter, drafter_version, target, recording, source, dtype;
  int64_t rows = 0;  // scored for a candidate
  int64_t rows_outside_vocabulary = 0;
  int32_t sequences = 0;
  double alpha = 0.0;               // of a wrong exclusion anywhere, all candidates together
  double equivalence_margin = 0.0;  // nats a row

  std::vector<DeclaredReading> declared;    // both when the head's files can be read in two ways
  std::vector<CandidateResult> candidates;  // best first
  int32_t reference = -1;  // what the others are compared with: the declared, else the best
  int32_t best = -1;       // highest mean log-likelihood
  std::vector<int32_t> equivalent;  // candidates that cannot be told from the reference
  // Against the contender that decided the verdict.
  double margin = 0.0;                 // nats a row by which the better of the two is better
  double p_value = 1.0;                // adjusted
  std::optional<int64_t> rows_needed;  // when undecided and more rows would settle it

  std::vector<WhatIf> what_if;
  std::vector<LabelResult> labels;
  Alignment alignment;
  std::vector<TensorProfile> profiles;
  std::vector<std::string> advice;
  std::vector<std::string> limits;  // what this recording could not test
  Pruning pruned;
};

}  // namespace aerie
