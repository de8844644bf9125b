#include "server/guard/verdict_text.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace aerie {
namespace {

std::string Short(const Capture& capture) {
  if (capture.kind == Capture::Kind::kFinalNorm) return "final norm";
  return capture.boundary == 0 ? "0 (embedding)" : absl::StrCat(capture.boundary);
}

template <typename Get>
std::string List(const std::vector<PlaceReport>& places, Get get) {
  return absl::StrCat("[",
                      absl::StrJoin(places, ", ",
                                    [&](std::string* out, const PlaceReport& place) {
                                      absl::StrAppend(out, Short(get(place)));
                                    }),
                      "]");
}

// By how many layers all captures look later (above 0) or earlier.
std::optional<int32_t> CommonStep(const std::vector<PlaceReport>& places) {
  std::optional<int32_t> common;
  for (const PlaceReport& place : places) {
    if (place.declared.kind != Capture::Kind::kBoundary ||
        place.looks_like.kind != Capture::Kind::kBoundary) {
      return std::nullopt;
    }
    const int32_t step = place.looks_like.boundary - place.declared.boundary;
    if (common.has_value() && *common != step) return std::nullopt;
    common = step;
  }
  return common;
}

// Layers in the middle of a target are hard to tell from their neighbours.
bool Near(const Capture& a, const Capture& b) {
  return a.kind == b.kind && std::abs(a.boundary - b.boundary) <= 3;
}

bool Moved(const PlaceReport& place) { return place.looks_like != place.declared; }

// Which two captures hold each other's rows.
std::optional<std::pair<size_t, size_t>> SwappedPair(const std::vector<PlaceReport>& places) {
  for (size_t i = 0; i < places.size(); ++i) {
    for (size_t j = i + 1; j < places.size(); ++j) {
      if (Moved(places[i]) && Moved(places[j]) && Near(places[i].looks_like, places[j].declared) &&
          Near(places[j].looks_like, places[i].declared)) {
        return std::make_pair(i, j);
      }
    }
  }
  return std::nullopt;
}

std::string Hint(const std::vector<PlaceReport>& places) {
  if (const std::optional<int32_t> step = CommonStep(places); step.has_value() && *step != 0) {
    const int32_t layers = std::abs(*step);
    return absl::StrCat("all captures are ",
                        layers == 1 ? "one layer" : absl::StrCat(layers, " layers"),
                        *step > 0 ? " later" : " earlier",
                        " than the drafter's; check whether the engine's layer ids mean the input "
                        "or the output of a layer");
  }
  if (const auto swapped = SwappedPair(places); swapped.has_value()) {
    return absl::StrCat("captures ", swapped->first, " and ", swapped->second,
                        " seem to be swapped; check the order of concatenation");
  }
  for (const PlaceReport& place : places) {
    if (!Moved(place)) continue;
    if (place.looks_like.kind == Capture::Kind::kFinalNorm) {
      return absl::StrCat("the target's final norm is sent in place of ", place.declared.ToString(),
                          "; capture the residual stream, before any norm");
    }
    if (place.looks_like == Capture::Boundary(0)) {
      return absl::StrCat("the embedding is sent in place of ", place.declared.ToString(),
                          "; check for a layer id of -1 or 0");
    }
  }
  return "check the layer ids that the engine captures at, and their order";
}

}  // namespace

std::string CaptureVerdict(const std::vector<PlaceReport>& places) {
  if (std::any_of(places.begin(), places.end(), Moved)) {
    return absl::StrCat(
        "rows look like ", List(places, [](const PlaceReport& p) { return p.looks_like; }),
        ", or layers near them; the drafter wants ",
        List(places, [](const PlaceReport& p) { return p.declared; }), ": ", Hint(places));
  }
  std::string sizes;
  for (const PlaceReport& place : places) {
    absl::StrAppendFormat(&sizes, "%s%.2f", sizes.empty() ? "" : ", ", place.size);
  }
  return absl::StrCat("values are ", sizes, " times as large as recorded; expected about 1 for ",
                      List(places, [](const PlaceReport& p) { return p.declared; }),
                      ": check that the residual is added and that no norm or scale is applied");
}

std::string AlignmentVerdict(const AlignmentReport& alignment) {
  const bool own = alignment.own < alignment.earlier;
  return absl::StrCat(
      "tokens do not belong to their states: a row's state is that of ",
      own ? "its own token" : "the token two in front of its own",
      "; expected that of the token in front of it: send x[p+1] with the state of position p, ",
      own ? "tokens lag one behind" : "tokens run one ahead");
}

void AppendSentence(const std::string& sentence, std::string& text) {
  if (sentence.empty()) return;
  absl::StrAppend(&text, text.empty() ? "" : ". ", sentence);
}

}  // namespace aerie
