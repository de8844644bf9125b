// How a wiring is spelled in the settings of the engines that serve it.
//
// One list of boundaries, three lists of ids: SGLang and TensorRT-LLM number the layer *behind*
// which a state is taken, vLLM the one in front of which, and SGLang makes exceptions for some
// targets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/wiring.h"

namespace aerie {

// One line for each engine: what to write, or why it cannot serve this wiring. `model_type`: of the
// target's config.json; empty: not known.
std::vector<std::string> SpellForEngines(const Wiring& wiring, int32_t num_layers,
                                         absl::string_view model_type);

}  // namespace aerie
