#include "server/checkpoint/config_view.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/safetensors/json_check.h"

namespace aerie {
namespace {

using Json = nlohmann::json;
constexpr int kMaxDepth = 32;

// nullptr when `key` leads nowhere or to null.
const Json* Lookup(const Json& root, absl::string_view key) {
  const Json* at = &root;
  if (key.empty()) return at;
  for (const absl::string_view part : absl::StrSplit(key, '.')) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(part));
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at->is_null() ? nullptr : at;
}

// False when `key` leads nowhere.
bool Erase(Json& root, absl::string_view key) {
  Json* at = &root;
  const std::vector<std::string> parts = absl::StrSplit(key, '.');
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (!at->is_object() || !at->contains(parts[i])) return false;
    at = &(*at)[parts[i]];
  }
  return at->is_object() && at->erase(parts.back()) == 1;
}

}  // namespace

struct ConfigView::Document {
  Json root = Json::object();
};

ConfigView::ConfigView(absl::string_view text, std::string label, Complaints& complaints,
                       absl::Span<const std::string> ignored)
    : label_(std::move(label)), complaints_(complaints) {
  auto document = std::make_shared<Document>();
  if (absl::Status json = CheckJsonObject(text, kMaxDepth); json.ok()) {
    document->root = Json::parse(text.begin(), text.end());
  } else {
    complaints_.Add(absl::StrCat(label_, ": ", json.message(),
                                 "; expected one JSON object; fetch or write the file again"));
  }
  for (const std::string& key : ignored) {
    if (!Erase(document->root, key)) {
      complaints_.Warn(
          absl::StrCat(label_, " has no key ", key,
                       ", which --ignore-config-key names; expected one that is there; "
                       "remove the flag"));
    }
  }
  document_ = std::move(document);
}

bool ConfigView::Has(absl::string_view key) const {
  return Lookup(document_->root, key) != nullptr;
}

std::optional<bool> ConfigView::Bool(absl::string_view key) const {
  const Json* const value = Lookup(document_->root, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  WrongType(key, "true or false");
  return std::nullopt;
}

std::optional<int64_t> ConfigView::Int(absl::string_view key) const {
  const Json* const value = Lookup(document_->root, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned() && value->get<uint64_t>() <= uint64_t{INT64_MAX})
    return value->get<int64_t>();
  if (value->is_number_integer() && !value->is_number_unsigned()) return value->get<int64_t>();
  WrongType(key, "a whole number");
  return std::nullopt;
}

std::optional<int32_t> ConfigView::Positive(absl::string_view key) const {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  const auto value = Int(key);
  if (!value.has_value()) return std::nullopt;
  if (*value >= 1 && *value <= kMax) return static_cast<int32_t>(*value);
  complaints_.Add(absl::StrCat(SourceOf(key), " is ", *value, "; expected 1..", kMax,
                               "; put it right in the file"));
  return std::nullopt;
}

void ConfigView::Contradicts(absl::string_view key, absl::string_view other, int64_t found) const {
  complaints_.Add(absl::StrCat(SourceOf(key), " is ", Text(key), " but ", other, " is ", found,
                               "; expected the same; check that these files belong together"));
}

void ConfigView::Expect(absl::string_view key, absl::string_view other, int64_t found) const {
  const auto stated = Positive(key);
  if (stated.has_value() && *stated != found) Contradicts(key, other, found);
}

std::optional<double> ConfigView::Number(absl::string_view key) const {
  const Json* const value = Lookup(document_->root, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  WrongType(key, "a number");
  return std::nullopt;
}

std::optional<std::string> ConfigView::String(absl::string_view key) const {
  const Json* const value = Lookup(document_->root, key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  WrongType(key, "a string");
  return std::nullopt;
}

std::optional<std::vector<int32_t>> ConfigView::Ints(absl::string_view key) const {
  const Json* const value = Lookup(document_->root, key);
  if (value == nullptr) return std::nullopt;
  std::vector<int32_t> numbers;
  bool good = value->is_array();
  for (size_t i = 0; good && i < value->size(); ++i) {
    const Json& entry = (*value)[i];
    // An unsigned one past 2^63 would come back negative.
    good = entry.is_number_integer() &&
           (!entry.is_number_unsigned() || entry.get<uint64_t>() <= uint64_t{INT64_MAX}) &&
           entry.get<int64_t>() >= std::numeric_limits<int32_t>::min() &&
           entry.get<int64_t>() <= std::numeric_limits<int32_t>::max();
    if (good) numbers.push_back(entry.get<int32_t>());
  }
  if (good) return numbers;
  WrongType(key, "a list of whole numbers");
  return std::nullopt;
}

std::optional<std::vector<std::string>> ConfigView::Strings(absl::string_view key) const {
  const Json* const value = Lookup(document_->root, key);
  if (value == nullptr) return std::nullopt;
  std::vector<std::string> texts;
  bool good = value->is_array();
  for (size_t i = 0; good && i < value->size(); ++i) {
    good = (*value)[i].is_string();
    if (good) texts.push_back((*value)[i].get<std::string>());
  }
  if (good) return texts;
  WrongType(key, "a list of strings");
  return std::nullopt;
}

std::vector<std::string> ConfigView::Members(absl::string_view key) const {
  std::vector<std::string> names;
  const Json* const value = Lookup(document_->root, key);
  if (value == nullptr || !value->is_object()) return names;
  for (const auto& [name, member] : value->items()) {
    if (!member.is_null()) names.push_back(name);
  }
  return names;
}

std::string ConfigView::Text(absl::string_view key) const {
  const Json* const value = Lookup(document_->root, key);
  if (value == nullptr) return "null";
  std::string text = value->dump();
  constexpr size_t kMax = 100;
  if (text.size() > kMax) text = absl::StrCat(text.substr(0, kMax), "...");
  return text;
}

std::string ConfigView::SourceOf(absl::string_view key) const {
  return absl::StrCat(label_, ": ", key);
}

void ConfigView::WrongType(absl::string_view key, absl::string_view expected) const {
  complaints_.Add(absl::StrCat(SourceOf(key), " is ", Text(key), "; expected ", expected,
                               "; put it right in the file"));
}

}  // namespace aerie
