#include "server/checkpoint/config_view.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/checkpoint/json_check.h"

namespace aerie {
namespace {

using Json = nlohmann::json;
constexpr int kMaxDepth = 32;

// nullptr when `key` leads nowhere or to null.
const Json* Lookup(const Json& root, absl::string_view key) {
  const Json* at = &root;
  for (const absl::string_view part : absl::StrSplit(key, '.')) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(std::string(part));
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at->is_null() ? nullptr : at;
}

}  // namespace

struct ConfigView::Document {
  Json root = Json::object();
};

ConfigView::ConfigView(absl::string_view text, std::string label, Complaints& complaints)
    : label_(std::move(label)), complaints_(complaints) {
  auto document = std::make_shared<Document>();
  if (absl::Status json = CheckJsonObject(text, kMaxDepth); json.ok()) {
    document->root = Json::parse(text.begin(), text.end());
  } else {
    complaints_.Add(absl::StrCat(label_, ": ", json.message(),
                                 "; expected one JSON object; fetch or write the file again"));
  }
  document_ = std::move(document);
}

bool ConfigView::Has(absl::string_view key) const {
  return Lookup(document_->root, key) != nullptr;
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
    good = entry.is_number_integer() &&
           entry.get<int64_t>() >= std::numeric_limits<int32_t>::min() &&
           entry.get<int64_t>() <= std::numeric_limits<int32_t>::max();
    if (good) numbers.push_back(entry.get<int32_t>());
  }
  if (good) return numbers;
  WrongType(key, "a list of whole numbers");
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
