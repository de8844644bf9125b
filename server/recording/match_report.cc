#include "server/recording/match_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace aerie {
namespace {

using Json = nlohmann::ordered_json;

std::string ClaimText(const RecordedTensor& tensor) {
  return tensor.claim.has_value() ? tensor.claim->ToString() : "nothing";
}

std::string Named(const RecordedTensor& tensor) {
  // A label that repeats name or claim tells nothing.
  if (tensor.label.empty() || tensor.label == tensor.name || tensor.label == ClaimText(tensor)) {
    return tensor.name;
  }
  return absl::StrCat(tensor.name, " \"", tensor.label, "\"");
}

// All sentences about claims that do not hold.
std::vector<std::string> Contradictions(const Recording& a, const Recording& b,
                                        const MatchResult& result) {
  std::vector<std::string> told;
  for (size_t i = 0; i < result.matches.size(); ++i) {
    const TensorMatch& match = result.matches[i];
    const RecordedTensor& tensor = a.tensors()[i];
    const RecordedTensor& best = b.tensors()[match.best];
    if (match.claims_differ && match.verdict != MatchVerdict::kDifferent) {
      told.push_back(absl::StrCat(Named(tensor), " of A claims ", ClaimText(tensor), " and is ",
                                  match.verdict == MatchVerdict::kLikely ? "likely " : "",
                                  "the same as ", Named(best), " of B, which claims ",
                                  ClaimText(best)));
    } else if (match.claims_differ) {
      told.push_back(absl::StrCat(Named(tensor), " of A claims ", ClaimText(tensor),
                                  ", as a tensor of B does, and they are different"));
    }
    if (match.shift != 0) {
      told.push_back(absl::StrCat(Named(tensor), " of A: ", match.reason));
    }
    if (const auto fact = FactAgainstClaim(tensor, result.a_facts[i])) {
      told.push_back(
          absl::StrCat(Named(tensor), " of A claims ", ClaimText(tensor), ", but ", *fact));
    }
  }
  for (size_t j = 0; j < result.b_facts.size(); ++j) {
    if (const auto fact = FactAgainstClaim(b.tensors()[j], result.b_facts[j])) {
      told.push_back(absl::StrCat(Named(b.tensors()[j]), " of B claims ", ClaimText(b.tensors()[j]),
                                  ", but ", *fact));
    }
  }
  return told;
}

std::string Heading(char letter, const Recording& recording) {
  return absl::StrFormat("%c: %s: %d samples, %d tokens, %s%s%s\n", letter, recording.folder(),
                         recording.samples().size(), recording.total_tokens(),
                         DTypeName(recording.dtype()), recording.source().empty() ? "" : "; ",
                         recording.source());
}

// Columns as wide as their widest cell.
std::string Table(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths(lines[0].size());
  for (const auto& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (size_t c = 0; c < line.size(); ++c) {
      absl::StrAppendFormat(&row, "%-*s", static_cast<int>(widths[c] + 2), line[c]);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, row, "\n");
  }
  return text;
}

Json ClaimJson(const RecordedTensor& tensor) {
  if (!tensor.claim.has_value()) return nullptr;
  switch (tensor.claim->kind) {
    case TensorClaim::Kind::kBoundary:
      return {{"kind", "boundary"}, {"boundary", tensor.claim->boundary}};
    case TensorClaim::Kind::kFinalNorm:
      return {{"kind", "final_norm"}};
    case TensorClaim::Kind::kEmbedding:
      break;
  }
  return {{"kind", "embedding"}};
}

Json TensorJson(const RecordedTensor& tensor, const TensorFacts& facts) {
  Json json = {{"name", tensor.name},
               {"label", tensor.label},
               {"claim", ClaimJson(tensor)},
               {"median_row_rms", facts.median_row_rms},
               {"depends_on_token_alone", nullptr},
               {"claim_contradicted", FactAgainstClaim(tensor, facts).has_value()}};
  if (const auto alone = facts.depends_on_token_alone()) json["depends_on_token_alone"] = *alone;
  return json;
}

}  // namespace

std::string MatchAsText(const Recording& a, const Recording& b, const MatchResult& result) {
  std::string text = absl::StrCat(Heading('A', a), Heading('B', b));
  if (result.method == MatchMethod::kRows) {
    absl::StrAppend(&text, "Compared: ", result.compared_rows, " rows behind equal tokens.\n\n");
  } else {
    absl::StrAppend(&text, "Compared: fingerprints, over ", result.compared_rows,
                    " rows of A; the texts share no beginning. To be certain, re-run the tokens of "
                    "one of them: python -m aerie_draft.capture --like.\n\n");
  }
  std::vector<std::vector<std::string>> lines = {{"tensor of A", "claims", "RMS", "verdict",
                                                  "best in B", "distance", "runner-up", "distance",
                                                  "margin"}};
  for (size_t i = 0; i < result.matches.size(); ++i) {
    const TensorMatch& match = result.matches[i];
    std::vector<std::string> line = {Named(a.tensors()[i]),
                                     ClaimText(a.tensors()[i]),
                                     absl::StrFormat("%.3g", result.a_facts[i].median_row_rms),
                                     std::string(MatchVerdictName(match.verdict)),
                                     b.tensors()[match.best].name,
                                     absl::StrFormat("%.4f", match.distance)};
    if (match.runner_up.has_value()) {
      line.push_back(b.tensors()[*match.runner_up].name);
      line.push_back(absl::StrFormat("%.4f", match.runner_up_distance));
      line.push_back(absl::StrFormat("%.1f %%", 100 * match.margin));
    }
    lines.push_back(std::move(line));
  }
  absl::StrAppend(&text, Table(lines), "\n");
  for (size_t i = 0; i < result.matches.size(); ++i) {
    const TensorMatch& match = result.matches[i];
    if (match.verdict == MatchVerdict::kSame || match.verdict == MatchVerdict::kLikely) continue;
    absl::StrAppend(&text, Named(a.tensors()[i]), ": ", MatchVerdictName(match.verdict), ": ",
                    match.reason, ".\n");
  }
  const std::vector<std::string> contradictions = Contradictions(a, b, result);
  if (contradictions.empty()) {
    absl::StrAppend(&text, "No claim is contradicted.\n");
  } else {
    absl::StrAppend(&text, "Contradicted:\n");
    for (const std::string& sentence : contradictions) {
      absl::StrAppend(&text, "  - ", sentence, ".\n");
    }
  }
  return text;
}

std::string MatchAsJson(const Recording& a, const Recording& b, const MatchResult& result) {
  Json json = {{"method", result.method == MatchMethod::kRows ? "rows" : "fingerprints"},
               {"compared_rows", result.compared_rows},
               {"a", {{"folder", a.folder()}, {"tensors", Json::array()}}},
               {"b", {{"folder", b.folder()}, {"tensors", Json::array()}}},
               {"matches", Json::array()},
               {"contradictions", Contradictions(a, b, result)}};
  for (size_t i = 0; i < a.tensors().size(); ++i) {
    json["a"]["tensors"].push_back(TensorJson(a.tensors()[i], result.a_facts[i]));
  }
  for (size_t j = 0; j < b.tensors().size(); ++j) {
    json["b"]["tensors"].push_back(TensorJson(b.tensors()[j], result.b_facts[j]));
  }
  for (size_t i = 0; i < result.matches.size(); ++i) {
    const TensorMatch& match = result.matches[i];
    Json entry = {{"tensor", a.tensors()[i].name},
                  {"verdict", MatchVerdictName(match.verdict).data()},
                  {"best", b.tensors()[match.best].name},
                  {"distance", match.distance},
                  {"runner_up", nullptr},
                  {"runner_up_distance", nullptr},
                  {"margin", match.margin},
                  {"shift", match.shift},
                  {"claims_differ", match.claims_differ},
                  {"reason", match.reason}};
    if (match.runner_up.has_value()) {
      entry["runner_up"] = b.tensors()[*match.runner_up].name;
      entry["runner_up_distance"] = match.runner_up_distance;
    }
    json["matches"].push_back(std::move(entry));
  }
  // A label is free text from outside: what is no UTF-8 in it is replaced, not thrown at.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

int MatchExitCode(const Recording& a, const Recording& b, const MatchResult& result) {
  if (!Contradictions(a, b, result).empty()) return 3;
  const bool unsure =
      std::any_of(result.matches.begin(), result.matches.end(),
                  [](const TensorMatch& m) { return m.verdict == MatchVerdict::kUnsure; });
  return unsure ? 4 : 0;
}

}  // namespace aerie
