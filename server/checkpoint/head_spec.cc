#include "server/checkpoint/head_spec.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace aerie {

std::vector<Setting> HeadSpec::Settings() const {
  std::vector<Setting> settings;
  const auto add = [&settings](std::string name, const auto& sourced) {
    settings.push_back({std::move(name), absl::StrCat(sourced.value), sourced.source});
  };
  add("hidden_size", hidden_size);
  add("target_hidden_size", target_hidden_size);
  add("intermediate_size", intermediate_size);
  add("num_heads", num_heads);
  add("num_kv_heads", num_kv_heads);
  add("head_dim", head_dim);
  add("vocab_size", vocab_size);
  add("draft_vocab_size", draft_vocab_size);
  add("rms_norm_eps", rms_norm_eps);
  add("rope_type", rope.type);
  add("rope_theta", rope.theta);
  settings.push_back({"wiring", wiring.value.ToString(), wiring.source});
  settings.insert(settings.end(), fixed.begin(), fixed.end());
  return settings;
}

}  // namespace aerie
