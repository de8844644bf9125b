#include "server/checkpoint/target_config.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/checkpoint/config_view.h"

namespace aerie {
namespace {

constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

}  // namespace

std::optional<TargetSpec> ReadTargetSpec(absl::string_view config_json, Complaints& complaints) {
  const size_t before = complaints.list().size();
  const ConfigView config(config_json, "target's config.json", complaints);
  TargetSpec target;
  const struct {
    absl::string_view key;
    int32_t TargetSpec::*field;
  } rows[] = {{"num_hidden_layers", &TargetSpec::num_layers},
              {"hidden_size", &TargetSpec::hidden_size},
              {"vocab_size", &TargetSpec::vocab_size}};
  for (const auto& row : rows) {
    // Wrappers of several modalities keep their language model's settings one level down.
    std::string key(row.key);
    if (!config.Has(key)) key = absl::StrCat("text_config.", row.key);
    const auto value = config.Int(key);
    if (value.has_value() && *value >= 1 && *value <= kMaxExtent) {
      target.*row.field = static_cast<int32_t>(*value);
    } else if (complaints.list().size() == before || config.Has(key)) {
      complaints.Add(absl::StrCat("target's config.json has ", row.key, " ", config.Text(key),
                                  "; expected 1..", kMaxExtent,
                                  "; check that the folder is the target's"));
    }
  }
  for (const char* key : {"tie_word_embeddings", "text_config.tie_word_embeddings"}) {
    target.ties_embeddings = target.ties_embeddings || config.Bool(key).value_or(false);
  }
  if (complaints.list().size() != before) return std::nullopt;
  return target;
}

}  // namespace aerie
