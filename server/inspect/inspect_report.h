// What aerie-inspect tells of a head: everything that the server would say of it when it loads, and
// every reason for which it would not load.
//
// Settings come from the same code as those in the server's log and in GetServerInfo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/setting.h"
#include "server/checkpoint/checkpoint.h"

namespace aerie {

struct InspectReport {
  bool ok = false;
  std::vector<std::string> errors, warnings;
  std::string version;  // digest of the weights; empty when refused
  std::vector<Setting> settings;
  std::vector<TensorSpan> tensors;  // as in the files; no bytes
  Wiring wiring;                    // of nothing when it is not known
  WiringClaim claim;
  std::string guard;             // the live guard's profile in words; empty: wiring.json has none
  uint64_t parameter_bytes = 0;  // of all tensors of the head but the vocabulary maps
  // Numbers that one draft step reads at least: layers, final norm and output matrix, borrowed or
  // not. 0 when not known.
  uint64_t step_parameters = 0;
};

InspectReport MakeReport(const Inspection& inspection);

// Seconds that reading `parameters` numbers of `element_bytes` takes at `gigabytes_per_second`: no
// draft step of one sequence is faster.
double FloorSeconds(uint64_t parameters, int element_bytes, double gigabytes_per_second);

// One JSON object: ok, errors[], warnings[], version, settings{name: {value, source}},
// wiring{boundaries[], layer_ids[], convention, certainty, guard_profile}, parameter_bytes,
// step_floor{}, tensors[{name, dtype, shape, bytes}].
std::string ReportAsJson(const InspectReport& report, double gigabytes_per_second);
// For people.
std::string ReportAsText(const InspectReport& report, double gigabytes_per_second);

}  // namespace aerie
