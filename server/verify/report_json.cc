#include "server/verify/report_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace aerie {
namespace {

using Json = nlohmann::ordered_json;

Json Count(const std::optional<int64_t>& count) {
  return count.has_value() ? Json(*count) : Json(nullptr);
}

Json Depths(const DepthScores& depths) {
  return {{"starts", depths.starts},
          {"teacher_forced_accuracy", depths.accuracy},
          {"teacher_forced_log_likelihood", depths.log_likelihood},
          {"free_running_acceptance", depths.acceptance},
          {"accept_length", depths.accept_length}};
}

Json Test(const PairedTest& test) {
  return {
      {"difference", test.difference}, {"standard_error", test.standard_error}, {"t", test.t},
      {"p_value", test.p_value},       {"p_adjusted", test.p_adjusted},         {"rows", test.rows},
      {"sequences", test.sequences}};
}

Json CandidateAsJson(const CandidateResult& candidate) {
  const WiringView& wiring = candidate.wiring;
  return {{"tensors", wiring.tensors},
          {"claims", wiring.claims},
          {"shift", wiring.shift},
          {"final_norm", wiring.final_norm},
          {"embedding", wiring.embedding},
          {"declared", candidate.declared},
          {"standing", std::string(StandingName(candidate.standing))},
          {"accuracy", candidate.accuracy},
          {"mean_log_likelihood", candidate.mean_log_likelihood},
          {"rows", candidate.rows},
          {"coarse", candidate.coarse},
          {"test", Test(candidate.test)},
          {"test_against_best", Test(candidate.best_test)},
          {"rival_of_best", candidate.rival},
          {"rows_for_3_sigma", Count(candidate.rows_for_3_sigma)},
          {"depths", candidate.depths.has_value() ? Depths(*candidate.depths) : Json(nullptr)}};
}

Json CandidateAt(const VerifyResult& result, int32_t index) {
  return index < 0 ? Json(nullptr) : CandidateAsJson(result.candidates[index]);
}

Json ReadingsAsJson(const VerifyResult& result) {
  Json readings = Json::array();
  for (const DeclaredReading& reading : result.declared) {
    readings.push_back({{"convention", reading.convention},
                        {"wiring", reading.wiring},
                        {"candidate", reading.candidate},
                        {"why_not", reading.why_not}});
  }
  return readings;
}

Json WhatIfAsJson(const VerifyResult& result) {
  Json rows = Json::array();
  for (const WhatIf& row : result.what_if) {
    rows.push_back({{"setting", row.setting},
                    {"declared", row.declared},
                    {"value", row.value},
                    {"scored", row.scored},
                    {"why_not", row.why_not},
                    {"better", row.better},
                    {"depths", row.scored ? Depths(row.depths) : Json(nullptr)},
                    {"test", row.scored ? Test(row.test) : Json(nullptr)}});
  }
  return rows;
}

Json LabelsAsJson(const VerifyResult& result) {
  Json labels = Json::array();
  for (const LabelResult& label : result.labels) {
    labels.push_back({{"tensor", label.tensor},
                      {"label", label.label},
                      {"claim", label.claim},
                      {"verdict", std::string(LabelVerdictName(label.verdict))},
                      {"reason", label.reason}});
  }
  return labels;
}

Json AlignmentAsJson(const Alignment& alignment) {
  Json tensors = Json::array();
  for (const TensorAlignment& tensor : alignment.tensors) {
    tensors.push_back({{"tensor", tensor.tensor},
                       {"similarity", tensor.similarity},
                       {"peak", tensor.peak.has_value() ? Json(*tensor.peak) : Json(nullptr)}});
  }
  return {{"shift", alignment.shift.has_value() ? Json(*alignment.shift) : Json(nullptr)},
          {"reason", alignment.reason},
          {"offsets", kAlignmentOffsets},
          {"tensors", std::move(tensors)}};
}

Json ProfilesAsJson(const VerifyResult& result) {
  Json profiles = Json::array();
  for (const TensorProfile& profile : result.profiles) {
    profiles.push_back({{"tensor", profile.tensor},
                        {"claim", profile.claim},
                        {"rms_quantiles", profile.rms_quantiles}});
  }
  return profiles;
}

Json PruningAsJson(const Pruning& pruned) {
  return {{"exhaustive", pruned.exhaustive},
          {"possible", pruned.possible},
          {"scored_coarse", pruned.scored_coarse},
          {"scored_fully", pruned.scored_fully},
          {"coarse_rows", pruned.coarse_rows},
          {"rows", pruned.rows},
          {"rule", pruned.rule}};
}

}  // namespace

std::string VerifyResultAsJson(const VerifyResult& result) {
  Json candidates = Json::array();
  for (const CandidateResult& candidate : result.candidates) {
    candidates.push_back(CandidateAsJson(candidate));
  }
  Json equivalent = Json::array();
  for (const int32_t index : result.equivalent) {
    equivalent.push_back(CandidateAt(result, index));
  }
  const bool is_declared = result.reference >= 0 && result.candidates[result.reference].declared;
  const Json json = {
      {"verdict", std::string(VerdictName(result.verdict))},
      {"exit_code", ExitCode(result.verdict)},
      {"reason", result.reason},
      {"best", CandidateAt(result, result.best)},
      {"declared", is_declared ? CandidateAt(result, result.reference) : Json(nullptr)},
      {"readings", ReadingsAsJson(result)},
      {"margin", result.margin},
      {"p_value", result.p_value},
      {"rows", result.rows},
      {"rows_outside_vocabulary", result.rows_outside_vocabulary},
      {"rows_needed", Count(result.rows_needed)},
      {"sequences", result.sequences},
      {"alpha", result.alpha},
      {"equivalence_margin", result.equivalence_margin},
      {"drafter", result.drafter},
      {"drafter_version", result.drafter_version},
      {"target", result.target},
      {"recording", result.recording},
      {"source", result.source},
      {"dtype", result.dtype},
      {"equivalent", std::move(equivalent)},
      {"what_if", WhatIfAsJson(result)},
      {"labels", LabelsAsJson(result)},
      {"advice", result.advice},
      {"limits", result.limits},
      {"pruned", PruningAsJson(result.pruned)},
      {"alignment", AlignmentAsJson(result.alignment)},
      {"profiles", ProfilesAsJson(result)},
      {"candidates", std::move(candidates)},
  };
  // Names in files need not be UTF-8; they must not stop the report. What is infinite becomes null.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace aerie
