#include "server/config/drafters_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/safetensors/json_check.h"
#include "common/status_macros.h"
#include "nlohmann/json.hpp"
#include "server/config/flag_readers.h"

namespace aerie {
namespace {

using nlohmann::json;

absl::Status Wrong(const std::string& path, const std::string& seen, const std::string& expected) {
  return absl::InvalidArgumentError(
      absl::StrCat("--drafters ", path, ": ", seen, "; expected ", expected, "; correct the file"));
}

// For messages: what is in the file may be long, and nested deeper than can be printed.
std::string Shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return value.is_string() ? Quoted(value.get_ref<const std::string&>()) : value.dump();
}

// A key that is no longer than keys are.
std::string Shortened(const std::string& key) {
  return key.size() <= 40 ? key : absl::StrCat(key.substr(0, 40), "...");
}

// Reads one object. Not absolute paths start at `folder`.
class DrafterReader {
 public:
  DrafterReader(const std::string& path, size_t number) : path_(path), number_(number) {}

  absl::StatusOr<DrafterOptions> Read(const json& object) {
    if (!object.is_object()) return Wrong(Place(""), "is no object", "one for each drafter");
    for (const auto& [key, value] : object.items()) {
      AERIE_RETURN_IF_ERROR(Set(key, value));
    }
    for (const auto& [key, text] :
         {std::pair{"name", &out_.name}, std::pair{"drafter", &out_.drafter},
          std::pair{"target", &out_.target}}) {
      if (text->empty()) return Wrong(Place(key), "is missing", "a text that is not empty");
    }
    // It speaks of flags, which have the names of the keys.
    if (const absl::Status valid = out_.Validate(); !valid.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--drafters ", Place(""), ": ", valid.message()));
    }
    return out_;
  }

 private:
  std::string Place(const std::string& key) const {
    return absl::StrCat(path_, ": drafter ", number_, key.empty() ? "" : ": ", Shortened(key));
  }

  absl::Status Set(const std::string& key, const json& value) {
    if (key == "name") return Text(key, value, &out_.name);
    if (key == "drafter") return Path(key, value, &out_.drafter);
    if (key == "target") return Path(key, value, &out_.target);
    if (key == "embedding_key") return Text(key, value, &out_.embedding_key);
    if (key == "norm_before_residual") return Switch(key, value, &out_.norm_before_residual);
    if (key == "norm_output") return Switch(key, value, &out_.norm_output);
    if (key == "rope_theta") {
      if (!value.is_number()) return Wrong(Place(key), Shown(value), "a number");
      out_.rope_theta = value.get<double>();
      return absl::OkStatus();
    }
    if (key == "layer_id_convention") {
      std::string text;
      AERIE_RETURN_IF_ERROR(Text(key, value, &text));
      AERIE_ASSIGN_OR_RETURN(out_.layer_ids, ReadConvention(Place(key), text));
      return absl::OkStatus();
    }
    if (key == "ignore_config_key") {
      if (!value.is_array()) return Wrong(Place(key), Shown(value), "a list of texts");
      for (const json& each : value) {
        std::string text;
        AERIE_RETURN_IF_ERROR(Text(key, each, &text));
        out_.ignored_config_keys.push_back(text);
      }
      return absl::OkStatus();
    }
    return Wrong(Place(key), "is no key of a drafter",
                 "name, drafter, target, layer_id_convention, embedding_key, norm_before_residual, "
                 "norm_output, rope_theta or ignore_config_key");
  }

  absl::Status Text(const std::string& key, const json& value, std::string* out) const {
    if (!value.is_string()) return Wrong(Place(key), Shown(value), "a text");
    *out = value.get<std::string>();
    return absl::OkStatus();
  }

  absl::Status Path(const std::string& key, const json& value, std::string* out) const {
    AERIE_RETURN_IF_ERROR(Text(key, value, out));
    if (out->empty()) return absl::OkStatus();
    *out = (std::filesystem::path(path_).parent_path() / *out).string();
    return absl::OkStatus();
  }

  absl::Status Switch(const std::string& key, const json& value, std::optional<bool>* out) const {
    if (!value.is_boolean()) return Wrong(Place(key), Shown(value), "true or false");
    *out = value.get<bool>();
    return absl::OkStatus();
  }

  const std::string& path_;
  const size_t number_;
  DrafterOptions out_;
};

}  // namespace

absl::StatusOr<std::vector<DrafterOptions>> ReadDraftersFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return Wrong(path, "cannot be read", "a file that is there and ours to read");
  return ParseDrafters(text, path);
}

absl::StatusOr<std::vector<DrafterOptions>> ParseDrafters(absl::string_view text,
                                                          const std::string& path) {
  const json list = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!list.is_array() || list.empty()) {
    return Wrong(path, list.is_discarded() ? "is no JSON" : "is no list of drafters",
                 "a JSON list with an object for each drafter");
  }
  std::vector<DrafterOptions> out;
  std::set<std::string> names;
  for (const json& object : list) {
    AERIE_ASSIGN_OR_RETURN(DrafterOptions drafter,
                           DrafterReader(path, out.size() + 1).Read(object));
    if (!names.insert(drafter.name).second) {
      return Wrong(path, absl::StrCat("two drafters are called ", Quoted(drafter.name)),
                   "a name for each");
    }
    out.push_back(std::move(drafter));
  }
  return out;
}

}  // namespace aerie
