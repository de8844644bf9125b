// Which quantised weights can be read: those that are fp8 numbers with a scale, whoever wrote them.
#pragma once

#include <string>

#include "server/checkpoint/config_view.h"
#include "server/checkpoint/head_tensors.h"
#include "server/checkpoint/sourced.h"

namespace aerie {

// Complains of a quantization_config for anything else than fp8, by its own name for it. Returns
// what the tensors are: "none", or "F8_E4M3 weights".
Sourced<std::string> CheckQuantisation(const ConfigView& config, const HeadTensors& tensors);

}  // namespace aerie
