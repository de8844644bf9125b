// Typed reading of a config.json, in which null is the same as absent and a value of another type
// is a complaint.
//
// Keys may lead into objects: "eagle_config.use_aux_hidden_state".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/checkpoint/complaints.h"

namespace aerie {

class ConfigView {
 public:
  // `text` must be a JSON object, else it is a complaint and the view is empty. `label` names the
  // file in complaints. `ignored` keys are as if they were absent; one that leads nowhere is warned
  // of. `complaints` must outlive the view.
  ConfigView(absl::string_view text, std::string label, Complaints& complaints,
             absl::Span<const std::string> ignored = {});

  bool Has(absl::string_view key) const;
  std::optional<bool> Bool(absl::string_view key) const;
  std::optional<int64_t> Int(absl::string_view key) const;
  // A whole number in 1..2^31-1; complains of any other.
  std::optional<int32_t> Positive(absl::string_view key) const;
  std::optional<double> Number(absl::string_view key) const;
  std::optional<std::string> String(absl::string_view key) const;
  std::optional<std::vector<int32_t>> Ints(absl::string_view key) const;
  std::optional<std::vector<std::string>> Strings(absl::string_view key) const;
  // Names of the members of an object that are not null, of the file's own with an empty key; empty
  // for anything else.
  std::vector<std::string> Members(absl::string_view key) const;
  // The value as JSON: `false`, `"silu"`, `[1, 2]`; cut when long.
  std::string Text(absl::string_view key) const;

  // Complains that `key` says something else than what was found elsewhere.
  void Contradicts(absl::string_view key, absl::string_view other, int64_t found) const;
  // Compares: complains when the key is there and is not `found`.
  void Expect(absl::string_view key, absl::string_view other, int64_t found) const;

  // "config.json: rope_theta".
  std::string SourceOf(absl::string_view key) const;
  Complaints& complaints() const { return complaints_; }

 private:
  struct Document;
  void WrongType(absl::string_view key, absl::string_view expected) const;

  std::string label_;
  Complaints& complaints_;
  std::shared_ptr<const Document> document_;
};

}  // namespace aerie
