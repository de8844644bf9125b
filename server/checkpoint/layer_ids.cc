#include "server/checkpoint/layer_ids.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace aerie {
namespace {

std::string Listed(absl::Span<const int32_t> ids) {
  return absl::StrCat("[", absl::StrJoin(ids, ", "), "]");
}

std::vector<int32_t> Shifted(std::vector<int32_t> ids, int32_t by) {
  for (int32_t& id : ids) id = static_cast<int32_t>(int64_t{id} + by);
  return ids;
}

absl::string_view NameOf(LayerIdConvention convention) {
  return convention == LayerIdConvention::kInputOfLayer ? "input-of-layer" : "output-of-layer";
}

// How the ids are to be read, and why.
struct Reading {
  LayerIdConvention convention = LayerIdConvention::kInputOfLayer;
  WiringCertainty certainty = WiringCertainty::kAmbiguous;
  std::string reason;  // empty: nothing settles it
};

Reading ReadingOf(const WiringQuestion& question, const std::vector<int32_t>& usual) {
  using C = LayerIdConvention;
  const std::vector<int32_t>& ids = *question.ids;
  const bool known = question.num_layers > 0;
  if (question.flag.has_value()) {
    return {*question.flag, WiringCertainty::kDeclaredByFlag,
            absl::StrCat("by flag --layer-id-convention=", NameOf(*question.flag))};
  }
  if (question.producer.has_value()) {
    return {*question.producer, WiringCertainty::kCertain,
            absl::StrCat("as ", question.producer_name, " does")};
  }
  if (known && ids == Shifted(usual, -1)) {
    return {C::kOutputOfLayer, WiringCertainty::kByDefaultPattern, "since it is [1, n/2-1, n-4]"};
  }
  if (known && ids == usual) {
    return {C::kInputOfLayer, WiringCertainty::kByDefaultPattern, "since it is [2, n/2, n-3]"};
  }
  return {};
}

WiringAnswer Measured(const WiringQuestion& question, Complaints& complaints) {
  WiringAnswer answer;
  answer.claim = {question.ids.value_or(std::vector<int32_t>()), "measured",
                  WiringCertainty::kCertain};
  const int32_t layers =
      question.num_layers > 0 ? question.num_layers : std::numeric_limits<int32_t>::max() - 1;
  absl::StatusOr<Wiring> wiring = Wiring::Create(question.measured->captures, layers);
  if (wiring.ok()) {
    answer.wiring = {*std::move(wiring), absl::StrCat("measured: ", question.measured->source)};
  } else {
    complaints.Add(absl::StrCat(question.measured->source, ": ", wiring.status().message()));
  }
  return answer;
}

void ComplainOfTwoReadings(const WiringQuestion& question, const std::vector<int32_t>& usual,
                           Complaints& complaints) {
  const std::vector<int32_t>& ids = *question.ids;
  complaints.Add(absl::StrCat(
      "config.json: ", question.key, " ", Listed(ids), " may mean boundaries ", Listed(ids),
      " (input of these layers) or ", Listed(Shifted(ids, 1)),
      " (output of these layers); expected ", Listed(Shifted(usual, -1)), " or ", Listed(usual),
      " of a target with ", question.num_layers,
      " layers, or to be told; measure it with aerie-verify, which writes wiring.json beside the "
      "head, or ask the head's producer and set --layer-id-convention=input-of-layer or "
      "--layer-id-convention=output-of-layer"));
}

}  // namespace

absl::string_view WiringCertaintyName(WiringCertainty certainty) {
  switch (certainty) {
    case WiringCertainty::kCertain:
      return "certain";
    case WiringCertainty::kByDefaultPattern:
      return "by-default-pattern";
    case WiringCertainty::kDeclaredByFlag:
      return "declared-by-flag";
    case WiringCertainty::kAmbiguous:
      return "ambiguous";
  }
  return "";
}

std::vector<int32_t> DefaultBoundaries(int32_t num_layers) {
  return {2, num_layers / 2, num_layers - 3};
}

WiringAnswer ResolveWiring(const WiringQuestion& question, Complaints& complaints) {
  if (question.measured.has_value() && !question.flag.has_value()) {
    return Measured(question, complaints);
  }
  WiringAnswer answer;
  const std::vector<int32_t> usual = DefaultBoundaries(question.num_layers);
  Reading reading;
  std::string source;
  if (question.ids.has_value()) {
    answer.claim.ids = *question.ids;
    reading = ReadingOf(question, usual);
    answer.claim.certainty = reading.certainty;
    if (reading.reason.empty()) {
      answer.claim.convention = "unknown";
      // Without a target there is no telling whether the list is a usual one.
      if (question.num_layers > 0) ComplainOfTwoReadings(question, usual, complaints);
      return answer;
    }
    answer.claim.convention = std::string(NameOf(reading.convention));
    source = absl::StrCat("config.json: ", question.key, " ", Listed(*question.ids), ", read as ",
                          answer.claim.convention, " ", reading.reason);
    if (question.producer == LayerIdConvention::kInputOfLayer && !question.flag.has_value() &&
        question.num_layers > 0 && *question.ids == Shifted(usual, -1)) {
      complaints.Warn(
          absl::StrCat("config.json: ", question.key, " is ", Listed(*question.ids),
                       ", the usual list of those who number outputs of layers; expected ",
                       Listed(usual), " of a ", question.producer_name,
                       " head; if it was converted from another layout, set "
                       "--layer-id-convention=output-of-layer"));
    }
  } else {
    answer.claim.convention = "none";
    if (question.num_layers == 0) return answer;
    answer.claim.certainty = WiringCertainty::kByDefaultPattern;
    source = "default: [2, n/2, n-3] of the target's layers";
  }
  const std::vector<int32_t> ids = question.ids.value_or(usual);
  // Engines capture in ascending order whatever the list says, so the order of any other list is
  // anyone's guess.
  if (!std::is_sorted(ids.begin(), ids.end())) {
    complaints.Add(
        absl::StrCat("the wiring (", source, ") names ", Listed(ids),
                     ", not in ascending order; expected ascending ids, the order in which engines "
                     "concatenate; sort them if the head was trained so"));
    return answer;
  }
  const int32_t layers =
      question.num_layers > 0 ? question.num_layers : std::numeric_limits<int32_t>::max() - 1;
  absl::StatusOr<Wiring> wiring = Wiring::FromLayerIds(ids, reading.convention, layers);
  if (!wiring.ok()) {
    complaints.Add(
        absl::StrCat("the wiring (", source, ") is impossible: ", wiring.status().message()));
    return answer;
  }
  answer.wiring = {*std::move(wiring), std::move(source)};
  return answer;
}

}  // namespace aerie
