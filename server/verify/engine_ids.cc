#include "server/verify/engine_ids.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace aerie {
namespace {

std::string Listed(absl::Span<const int32_t> ids) {
  return absl::StrCat("[", absl::StrJoin(ids, ", "), "]");
}

std::vector<int32_t> Behind(std::vector<int32_t> boundaries) {
  for (int32_t& boundary : boundaries) --boundary;
  return boundaries;
}

// The boundaries of a wiring without a final norm.
std::optional<std::vector<int32_t>> BoundariesOf(const Wiring& wiring) {
  std::vector<int32_t> boundaries;
  for (const Capture& capture : wiring.captures()) {
    if (capture.kind != Capture::Kind::kBoundary) return std::nullopt;
    boundaries.push_back(capture.boundary);
  }
  return boundaries;
}

std::string ForSglang(const std::vector<int32_t>& boundaries, int32_t num_layers,
                      absl::string_view model_type) {
  constexpr char kField[] = "SGLang: eagle_config.eagle_aux_hidden_state_layer_ids ";
  if (boundaries.front() == 0) {
    return "SGLang: cannot capture the embedding; it has no id for boundary 0";
  }
  if (absl::StartsWith(model_type, "deepseek") || absl::StartsWith(model_type, "kimi") ||
      model_type == "glm4_moe_lite") {
    // It adds 1 only when the first id is 1, and takes other lists as boundaries.
    if (boundaries.front() == 2) {
      return absl::StrCat(kField, Listed(Behind(boundaries)),
                          " (it adds 1 for this target, because the first id is 1)");
    }
    if (boundaries.front() == 1) {
      return absl::StrCat("SGLang: cannot spell ", Listed(boundaries),
                          " for this target: it adds 1 to every list that begins with 1");
    }
    return absl::StrCat(kField, Listed(boundaries),
                        " (it takes them as boundaries for this target; releases before May 2026 "
                        "added 1: write ",
                        Listed(Behind(boundaries)), " there)");
  }
  const int32_t last = *std::max_element(boundaries.begin(), boundaries.end());
  if (model_type == "gpt_oss" && last == num_layers) {
    return absl::StrCat(kField, Listed(boundaries),
                        " (it takes a list that ends with the number of layers as boundaries)");
  }
  if (last == num_layers) {
    return absl::StrCat(
        "SGLang: captures nothing behind the last layer of most targets, so boundary ", num_layers,
        " would be left out");
  }
  return absl::StrCat(kField, Listed(Behind(boundaries)), " (it adds 1)");
}

std::string ForVllm(const std::vector<int32_t>& boundaries, absl::string_view model_type) {
  std::string text = absl::StrCat("vLLM: eagle_aux_hidden_state_layer_ids ", Listed(boundaries),
                                  " at the top level of config.json (it takes them as boundaries");
  if (boundaries.front() == 0 && absl::StartsWith(model_type, "deepseek")) {
    absl::StrAppend(&text, ", but its DeepSeek models fail at boundary 0");
  }
  return absl::StrCat(text, "; below eagle_config only its V1 runner looks)");
}

}  // namespace

std::vector<std::string> SpellForEngines(const Wiring& wiring, int32_t num_layers,
                                         absl::string_view model_type) {
  const auto boundaries = BoundariesOf(wiring);
  if (!boundaries.has_value() || boundaries->empty()) {
    if (wiring.size() != 1) {
      return {"SGLang, vLLM and TensorRT-LLM: none captures the final norm next to boundaries"};
    }
    return {
        "SGLang: eagle_config.use_aux_hidden_state false (it then feeds the state behind the "
        "final norm)",
        "vLLM: eagle_config.use_aux_hidden_state false",
        "TensorRT-LLM: eagle3_layers_to_capture [-1] (-1 is the state behind the final norm)"};
  }
  if (!std::is_sorted(boundaries->begin(), boundaries->end())) {
    return {
        absl::StrCat("SGLang, vLLM and TensorRT-LLM concatenate in ascending order whatever "
                     "the list says, so none can serve ",
                     Listed(*boundaries),
                     ": put the columns of fc.weight into ascending order of boundaries "
                     "instead")};
  }
  std::string tensorrt =
      absl::StrCat("TensorRT-LLM: eagle3_layers_to_capture ", Listed(Behind(*boundaries)),
                   " (it captures behind the layer)");
  if (boundaries->front() == 0) {
    tensorrt = "TensorRT-LLM: cannot capture the embedding; -1 is the state behind its final norm";
  }
  return {ForSglang(*boundaries, num_layers, model_type), ForVllm(*boundaries, model_type),
          std::move(tensorrt)};
}

}  // namespace aerie
