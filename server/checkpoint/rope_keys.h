// The members of rope_scaling and rope_parameters, read as one.
//
// A member may stand in either object, and rope_theta and partial_rotary_factor beside them as
// well. Wherever two places differ there is a complaint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/checkpoint/config_view.h"
#include "server/checkpoint/sourced.h"

namespace aerie {

inline constexpr absl::string_view kRopeObjects[] = {"rope_scaling", "rope_parameters"};

class RopeKeys {
 public:
  // `prefix`: in front of the keys of the layer. Both must outlive this.
  RopeKeys(const ConfigView& config, const std::string& prefix)
      : config_(config), prefix_(prefix) {}

  const ConfigView& config() const { return config_; }
  const std::string& prefix() const { return prefix_; }

  // Where a member may stand.
  std::vector<std::string> Places(absl::string_view name) const;
  std::optional<Sourced<double>> Number(absl::string_view name) const;
  // Complains when it is not there or not above 0; {} when it is not there.
  Sourced<double> Required(absl::string_view name) const;
  // Complains when it is no whole number; {} stays {}.
  Sourced<int32_t> AsLength(const Sourced<double>& value) const;

  // Complaints.
  void Differ(const std::string& key, const std::string& source, const std::string& text) const;
  void Refuse(const std::string& key, absl::string_view meaning, absl::string_view expected) const;
  void OutOfRange(const Sourced<double>& value, absl::string_view expected) const;

 private:
  const ConfigView& config_;
  const std::string& prefix_;
};

}  // namespace aerie
