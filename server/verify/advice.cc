#include "server/verify/advice.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/verify/engine_ids.h"

namespace aerie {
namespace {

bool AnyLabelLies(const VerifyResult& result) {
  return std::any_of(result.labels.begin(), result.labels.end(), [](const LabelResult& label) {
    return label.verdict == LabelVerdict::kContradicted;
  });
}

void AdviseOnShift(const WiringView& wiring, std::vector<std::string>& advice) {
  if (wiring.shift == 0) return;
  advice.push_back(absl::StrFormat(
      "The head drafts best when the token of position p + 1 meets the state that the recording "
      "has at position p %c %d: pair token p + 1 with the state of position p in whatever records "
      "or "
      "sends the states.",
      wiring.shift < 0 ? '-' : '+', std::abs(wiring.shift)));
}

void AdviseOnSettings(const VerifyResult& result, std::vector<std::string>& advice) {
  for (const WhatIf& what_if : result.what_if) {
    if (!what_if.better) continue;
    advice.push_back(absl::StrFormat(
        "Read the head with %s %s instead of %s: accept length %.2f instead of the declared one, "
        "%.3f nats a row better. Correct config.json, or start with --%s=%s.",
        what_if.setting, what_if.value, what_if.declared, what_if.depths.accept_length,
        -what_if.test.difference,
        what_if.setting == "rope_theta"    ? "rope-theta"
        : what_if.setting == "norm_output" ? "norm-output"
                                           : "norm-before-residual",
        what_if.value));
  }
}

void AddEngines(const Wiring& wiring, const AdviceFacts& facts, std::vector<std::string>& advice) {
  for (std::string& line :
       SpellForEngines(wiring, facts.num_layers,
                       facts.tables == nullptr ? absl::string_view() : facts.tables->model_type)) {
    advice.push_back(std::move(line));
  }
}

void AdviseAgainstLabels(const AdviceFacts& facts, std::vector<std::string>& advice) {
  advice.push_back(absl::StrCat(
      "Labels of this recording are wrong, so nothing here speaks against the head's own list ",
      facts.reading == nullptr ? "" : facts.reading->wiring.ToString(), ": the head wants ",
      ViewOf(*facts.best, facts.captures).Name(),
      " whatever they are called. Find out what these are with aerie-verify match, correct the "
      "claims in recording.json and verify again before changing any configuration."));
}

void AdviseOnRivals(const VerifyResult& result, std::vector<std::string>& advice) {
  constexpr size_t kShown = 4;
  std::vector<std::string> rivals;
  for (size_t i = 0; i < result.candidates.size(); ++i) {
    if (result.candidates[i].rival && static_cast<int32_t>(i) != result.best) {
      rivals.push_back(result.candidates[i].wiring.Name());
    }
  }
  if (rivals.empty()) return;
  const size_t more = rivals.size() > kShown ? rivals.size() - kShown : 0;
  rivals.resize(rivals.size() - more);
  advice.push_back(absl::StrCat(
      "That the declared wiring is wrong is certain; which is right is not: ",
      result.candidates[result.best].wiring.Name(), " cannot be told from ",
      absl::StrJoin(rivals, "; "), more > 0 ? absl::StrCat(" and ", more, " more") : "", "."));
}

void AdviseOnContradiction(const AdviceFacts& facts, std::vector<std::string>& advice) {
  const VerifyResult& result = facts.result;
  if (result.best == result.reference) return;  // a setting is contradicted, not the wiring
  AdviseOnRivals(result, advice);
  AdviseOnShift(ViewOf(*facts.best, facts.captures), advice);
  if (AnyLabelLies(result)) return AdviseAgainstLabels(facts, advice);
  const auto wiring = WiringByClaims({facts.best->tensors, 0}, facts.captures, facts.num_layers);
  if (!wiring.has_value()) {
    advice.push_back(
        "The tensors that the head wants have no clear labels: find out which boundaries they are "
        "with aerie-verify match.");
    return;
  }
  if (facts.reading != nullptr && *wiring == facts.reading->wiring) return;  // only the shift
  advice.push_back(absl::StrCat(
      "Capture ", wiring->ToString(), " (boundaries, in this order)",
      facts.reading == nullptr ? ""
                               : absl::StrCat(" instead of ", facts.reading->wiring.ToString()),
      ". Correct the list in config.json:"));
  AddEngines(*wiring, facts, advice);
}

void AdviseOnEquivalents(const AdviceFacts& facts, std::vector<std::string>& advice) {
  constexpr size_t kShown = 8;
  const VerifyResult& result = facts.result;
  const auto& reference = result.candidates[result.reference];
  std::vector<std::string> costs;
  for (const int32_t i : result.equivalent) {
    const CandidateResult& candidate = result.candidates[i];
    std::string cost = candidate.wiring.Name();
    if (candidate.depths.has_value() && reference.depths.has_value()) {
      absl::StrAppendFormat(&cost, " (accept length %+.3f)",
                            candidate.depths->accept_length - reference.depths->accept_length);
    }
    costs.push_back(std::move(cost));
  }
  if (costs.size() > kShown) {
    const size_t more = costs.size() - kShown;
    costs.resize(kShown);
    costs.push_back(absl::StrCat(more, " more"));
  }
  advice.push_back(absl::StrCat(
      "The head reads these as well as the declared wiring, so its scores cannot tell which of "
      "them "
      "a worker sends: ",
      absl::StrJoin(costs, "; "),
      ". It costs nothing that could be measured; compare values with aerie-verify match to be "
      "sure."));
}

void AdviseOnUndecided(const AdviceFacts& facts, std::vector<std::string>& advice) {
  const VerifyResult& result = facts.result;
  const auto left_behind = std::count_if(
      result.candidates.begin(), result.candidates.end(), [](const CandidateResult& candidate) {
        return candidate.coarse && candidate.standing == Standing::kOpen;
      });
  if (left_behind > 0) {
    advice.push_back(absl::StrFormat(
        "%d close candidates were not scored on all rows: set --max-thorough above %d.",
        left_behind, result.pruned.scored_fully));
  }
  if (result.rows_needed.has_value() && result.rows > 0) {
    const int64_t more = *result.rows_needed - result.rows;
    advice.push_back(absl::StrFormat(
        "Record about %d more rows, in new sequences and not in longer ones (%d of this length).",
        more, (more * result.sequences + result.rows - 1) / result.rows));
  } else if (AnyLabelLies(result)) {
    advice.push_back(
        "Record states of the target itself (python -m aerie_draft.capture), find out with "
        "aerie-verify match what the tensors of this recording are, correct the claims in its "
        "recording.json and verify again. More rows would not help.");
  } else {
    advice.push_back("Record more sequences, of different texts.");
  }
}

}  // namespace

std::vector<std::string> Advise(const AdviceFacts& facts) {
  std::vector<std::string> advice;
  AdviseOnSettings(facts.result, advice);
  switch (facts.result.verdict) {
    case Verdict::kContradicted:
      AdviseOnContradiction(facts, advice);
      return advice;
    case Verdict::kUndecided:
      AdviseOnUndecided(facts, advice);
      return advice;
    case Verdict::kEquivalent:
      AdviseOnEquivalents(facts, advice);
      break;
    case Verdict::kVerified:
      break;
  }
  if (facts.reading != nullptr) AddEngines(facts.reading->wiring, facts, advice);
  return advice;
}

std::optional<Wiring> WiringByClaims(const Candidate& candidate, const CaptureSet& captures,
                                     int32_t num_layers) {
  if (candidate.shift != 0) return std::nullopt;
  std::vector<Capture> list;
  for (const int32_t index : candidate.tensors) {
    const std::optional<TensorClaim>& claim = captures.tensors[index].claim;
    if (!claim.has_value()) return std::nullopt;
    switch (claim->kind) {
      case TensorClaim::Kind::kBoundary:
        list.push_back(Capture::Boundary(claim->boundary));
        break;
      case TensorClaim::Kind::kEmbedding:
        list.push_back(Capture::Boundary(0));
        break;
      case TensorClaim::Kind::kFinalNorm:
        list.push_back(Capture::FinalNorm());
        break;
    }
  }
  const int32_t layers = num_layers > 0 ? num_layers : std::numeric_limits<int32_t>::max() - 1;
  absl::StatusOr<Wiring> wiring = Wiring::Create(std::move(list), layers);
  if (!wiring.ok()) return std::nullopt;
  return *std::move(wiring);
}

std::vector<std::string> LimitsOf(const Reading& reading, const CaptureSet& captures,
                                  int32_t num_layers) {
  std::vector<std::string> missing;
  for (const Capture& capture : reading.wiring.captures()) {
    if (capture.kind != Capture::Kind::kBoundary) continue;
    for (const int32_t neighbour : {capture.boundary - 1, capture.boundary + 1}) {
      if (neighbour < 0 || (num_layers > 0 && neighbour > num_layers)) continue;
      if (FindCapture(captures, Capture::Boundary(neighbour)).has_value()) continue;
      const std::string name = absl::StrCat(neighbour);
      if (std::find(missing.begin(), missing.end(), name) == missing.end()) missing.push_back(name);
    }
  }
  if (missing.empty()) return {};
  return {absl::StrCat("the recording has no boundary ", absl::StrJoin(missing, ", "),
                       ": that a tensor is one layer off its claim was not tested there; record "
                       "the neighbours too, or compare values with aerie-verify match")};
}

}  // namespace aerie
