#include "common/safetensors/json_check.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace aerie {
namespace {

// Each callback returns false to stop the parser, with the reason in `error`.
class Checker final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Checker(int max_depth) : max_depth_(max_depth) {}

  const std::string& error() const { return error_; }

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool string(string_t&) override { return Value(); }
  bool binary(binary_t&) override { return Value(); }

  bool start_object(size_t) override {
    if (!Enter()) return false;
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return Leave();
  }
  bool start_array(size_t) override { return Value() && Enter(); }
  bool end_array() override { return Leave(); }

  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    error_ = absl::StrCat("the key ", Quoted(name), " stands twice in one object");
    return false;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    error_ = absl::StrCat("the JSON is malformed at byte ", position);
    return false;
  }

 private:
  bool Value() {
    if (depth_ > 0) return true;
    error_ = "the JSON is no object";
    return false;
  }
  bool Enter() {
    if (++depth_ <= max_depth_) return true;
    error_ = absl::StrCat("the JSON is nested more than ", max_depth_, " deep");
    return false;
  }
  bool Leave() {
    --depth_;
    return true;
  }

  const int max_depth_;
  int depth_ = 0;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string error_;
};

}  // namespace

absl::Status CheckJsonObject(absl::string_view text, int max_depth) {
  Checker checker(max_depth);
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &checker)) return absl::OkStatus();
  return absl::InvalidArgumentError(checker.error());
}

std::string Quoted(absl::string_view name) {
  constexpr size_t kMax = 100;
  return absl::StrCat("\"", absl::Utf8SafeCEscape(name.substr(0, kMax)),
                      name.size() > kMax ? "..." : "", "\"");
}

}  // namespace aerie
