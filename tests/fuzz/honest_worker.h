// What a worker says that keeps to the contract: where damaged conversations begin.
#pragma once

#include <string_view>

#include "tests/fuzz/call_script.h"

namespace aerie {

// The settings of a script.
inline constexpr uint8_t kScriptWindow = 1;   // the server has a draft window
inline constexpr uint8_t kScriptClients = 2;  // and limits for each client

// The digest of the fc that the drafter of scripts has.
inline constexpr char kScriptFcDigest[] = "fc";

// Of kind chain, tree, sampled_tree, sampled, adaptive, fp8, float16, fused, fork, start,
// stateless, window, clients, two or batch. Of another kind: an empty script.
CallScript HonestWorker(std::string_view kind);

}  // namespace aerie
