#include "server/checkpoint/rope_scaling.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"

namespace aerie {
namespace {

void ReadFactor(const RopeKeys& keys, RopeSpec& rope) {
  rope.factor = keys.Required("factor");
  if (!rope.factor.source.empty() && rope.factor.value > 0.0 && rope.factor.value < 1.0) {
    keys.OutOfRange(rope.factor, "1 or more");
  }
}

// The length from which a dynamic rotation is scaled.
void ReadTrainedLength(const RopeKeys& keys, RopeSpec& rope) {
  const std::string key = absl::StrCat(keys.prefix(), "max_position_embeddings");
  const auto stated = keys.config().Number(key);
  const auto original = keys.Number("original_max_position_embeddings");
  if (stated.has_value() && original.has_value() && *stated != original->value) {
    keys.Differ(key, original->source, absl::StrCat(original->value));
  }
  if (!stated.has_value() && !original.has_value()) {
    keys.config().complaints().Add(
        absl::StrCat("config.json has no ", key,
                     " beside a dynamic rotation; expected the length from "
                     "which it is scaled; fetch the file again"));
    return;
  }
  rope.original_max_positions = keys.AsLength(
      original.has_value() ? *original : Sourced<double>{*stated, keys.config().SourceOf(key)});
}

void CheckBand(const RopeKeys& keys, const RopeSpec& rope) {
  if (rope.high_freq_factor.source.empty() || rope.low_freq_factor.source.empty()) return;
  if (!(rope.high_freq_factor.value > rope.low_freq_factor.value)) {
    keys.OutOfRange(rope.high_freq_factor,
                    absl::StrCat("more than low_freq_factor ", rope.low_freq_factor.value));
  }
}

// By precedence: the value itself, the ratio of two weights, the rule.
void ReadAmplitude(const RopeKeys& keys, RopeSpec& rope) {
  const auto mscale = keys.Number("mscale");
  const auto all_dim = keys.Number("mscale_all_dim");
  if (const auto stated = keys.Number("attention_factor")) {
    rope.amplitude = *stated;
  } else if (mscale.has_value() && all_dim.has_value() && mscale->value != 0.0 &&
             all_dim->value != 0.0) {
    rope.amplitude = {YarnMagnitude(mscale->value, rope.factor.value) /
                          YarnMagnitude(all_dim->value, rope.factor.value),
                      absl::StrCat("ratio of yarn at ", mscale->source, " and mscale_all_dim")};
  } else {
    rope.amplitude = {YarnMagnitude(1.0, rope.factor.value), "rule of yarn: 0.1 ln(factor) + 1"};
  }
  if (!(rope.amplitude.value > 0.0) || !std::isfinite(rope.amplitude.value)) {
    keys.OutOfRange(rope.amplitude, "an amplitude above 0");
  }
}

void ReadYarn(const RopeKeys& keys, RopeSpec& rope) {
  rope.beta_fast = keys.Number("beta_fast").value_or(Sourced<double>{32.0, "default: of yarn"});
  rope.beta_slow = keys.Number("beta_slow").value_or(Sourced<double>{1.0, "default: of yarn"});
  if (!(rope.beta_slow.value > 0.0 && rope.beta_fast.value >= rope.beta_slow.value)) {
    keys.OutOfRange(rope.beta_fast, absl::StrCat("at least beta_slow ", rope.beta_slow.value,
                                                 ", and both above 0"));
  }
  rope.truncate = {true, "default: of yarn"};
  for (const std::string& key : keys.Places("truncate")) {
    if (const auto stated = keys.config().Bool(key))
      rope.truncate = {*stated, keys.config().SourceOf(key)};
  }
  // Serving engines differ in what this one multiplies.
  const auto ours = keys.Number("attn_factor");
  if (ours.has_value() && ours->value != 1.0)
    keys.OutOfRange(*ours, "1, or attention_factor instead");
  ReadAmplitude(keys, rope);
}

}  // namespace

double YarnMagnitude(double weight, double factor) {
  return factor > 1.0 ? 0.1 * weight * std::log(factor) + 1.0 : 1.0;
}

void ReadRopeScaling(const RopeKeys& keys, RopeSpec& rope) {
  rope.factor = {1.0, "default: nothing is scaled"};
  if (rope.type.value == RopeType::kDefault) return;
  ReadFactor(keys, rope);
  switch (rope.type.value) {
    case RopeType::kDefault:
    case RopeType::kLinear:
      break;
    case RopeType::kDynamic:
      ReadTrainedLength(keys, rope);
      break;
    case RopeType::kLlama3:
      rope.original_max_positions =
          keys.AsLength(keys.Required("original_max_position_embeddings"));
      rope.low_freq_factor = keys.Required("low_freq_factor");
      rope.high_freq_factor = keys.Required("high_freq_factor");
      CheckBand(keys, rope);
      break;
    case RopeType::kYarn:
      rope.original_max_positions =
          keys.AsLength(keys.Required("original_max_position_embeddings"));
      ReadYarn(keys, rope);
      break;
  }
}

}  // namespace aerie
