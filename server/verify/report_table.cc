#include "server/verify/report_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"

namespace aerie {
namespace {

constexpr int kMaxRivals = 12;
constexpr int kMaxOthers = 5;

std::string Fmt(absl::string_view text) { return std::string(text); }

std::string PText(double p) { return p < 1e-4 ? "<0.0001" : fmt::format("{:.4f}", p); }

std::string Percentages(const std::vector<double>& shares) {
  std::string text;
  for (const double share : shares) text += fmt::format(" {:5.1f}", 100.0 * share);
  return text;
}

void AppendCandidate(const CandidateResult& candidate, std::string& text) {
  const std::string accept = candidate.depths.has_value()
                                 ? fmt::format("{:.3f}", candidate.depths->accept_length)
                                 : std::string("-");
  const bool reference = candidate.standing == Standing::kReference;
  text += fmt::format("  {:<11} {:>6.1f} {:>8.3f} {:>9} {:>8} {:>8}  {}{}\n",
                      Fmt(StandingName(candidate.standing)), 100.0 * candidate.accuracy,
                      candidate.mean_log_likelihood,
                      reference ? "" : fmt::format("{:+.3f}", -candidate.test.difference),
                      reference ? "" : PText(candidate.test.p_adjusted), accept,
                      candidate.wiring.Name(), candidate.declared ? "  (declared)" : "");
}

// The declared ones, those that cannot be told from the best, and a few of the rest.
void AppendCandidates(const VerifyResult& result, std::string& text) {
  text += fmt::format("\n  {:<11} {:>6} {:>8} {:>9} {:>8} {:>8}  wiring\n", "standing", "acc. %",
                      "log-lik", "diff.", "p", "accept");
  int rivals = 0;
  int others = 0;
  for (const CandidateResult& candidate : result.candidates) {
    const bool shown =
        candidate.declared || (candidate.rival ? ++rivals <= kMaxRivals : ++others <= kMaxOthers);
    if (shown) AppendCandidate(candidate, text);
  }
  const int hidden = std::max(0, rivals - kMaxRivals) + std::max(0, others - kMaxOthers);
  if (hidden > 0) {
    text += fmt::format("  ... and {} more, {} of them close to the best\n", hidden,
                        std::max(0, rivals - kMaxRivals));
  }
}

void AppendDepths(const VerifyResult& result, std::string& text) {
  bool any = false;
  for (const int32_t index : {result.reference, result.best}) {
    if (index < 0 || (any && result.reference == result.best)) continue;
    const CandidateResult& candidate = result.candidates[index];
    if (!candidate.depths.has_value()) continue;
    if (!any) text += "\nBy draft depth, in %, behind rows of the recording\n";
    any = true;
    text += fmt::format("  {:<24}{}  accept length {:.3f}, {}\n", "next token right, true fed",
                        Percentages(candidate.depths->accuracy), candidate.depths->accept_length,
                        candidate.wiring.Name());
    text += fmt::format("  {:<26}{}\n", "all so far, own fed",
                        Percentages(candidate.depths->acceptance));
  }
}

void AppendWhatIf(const VerifyResult& result, std::string& text) {
  if (result.what_if.empty()) return;
  text += "\nWhat if the head's files were wrong in\n";
  for (const WhatIf& row : result.what_if) {
    text += fmt::format("  {:<22} {:>9} -> {:<14}", row.setting, row.declared, row.value);
    if (!row.scored) {
      text += fmt::format(" not tried: {}\n", row.why_not);
      continue;
    }
    text +=
        fmt::format(" accept length {:.3f}, {:+.3f} nats a row, p {}{}\n", row.depths.accept_length,
                    -row.test.difference, PText(row.test.p_adjusted), row.better ? "  BETTER" : "");
  }
}

void AppendLabels(const VerifyResult& result, std::string& text) {
  if (result.labels.empty()) return;
  text += "\nWhat the recording calls its tensors\n";
  for (const LabelResult& label : result.labels) {
    if (label.verdict == LabelVerdict::kUntested && result.labels.size() > 12) continue;
    text += fmt::format("  {:<13} {} = {}: {}\n", Fmt(LabelVerdictName(label.verdict)),
                        label.tensor, label.claim, label.reason);
  }
}

void AppendList(const char* heading, const std::vector<std::string>& lines, std::string& text) {
  if (lines.empty()) return;
  text += fmt::format("\n{}\n", heading);
  for (const std::string& line : lines) text += fmt::format("  * {}\n", line);
}

}  // namespace

std::string VerifyResultAsTable(const VerifyResult& result) {
  std::string text =
      fmt::format("{}: {}\n", absl::AsciiStrToUpper(VerdictName(result.verdict)), result.reason);
  text += fmt::format("\n  head {} ({}), recording {}\n  {} rows of {} sequences", result.drafter,
                      result.drafter_version, result.recording, result.rows, result.sequences);
  text += fmt::format(", {} of them with a next token outside the draft vocabulary\n",
                      result.rows_outside_vocabulary);
  for (const DeclaredReading& reading : result.declared) {
    text += fmt::format("  declared {}, read as {}{}\n", reading.wiring, reading.convention,
                        reading.why_not.empty() ? "" : ": " + reading.why_not);
  }
  AppendCandidates(result, text);
  AppendDepths(result, text);
  AppendWhatIf(result, text);
  AppendLabels(result, text);
  AppendList("Advice", result.advice, text);
  AppendList("Not tested", result.limits, text);
  text +=
      fmt::format("\n{} of {:.0f} candidates on {} rows, {} of these on {}: {}.\n",
                  result.pruned.scored_coarse, result.pruned.possible, result.pruned.coarse_rows,
                  result.pruned.scored_fully, result.pruned.rows, result.pruned.rule);
  return text;
}

}  // namespace aerie
