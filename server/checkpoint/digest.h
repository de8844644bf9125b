// A quick 64-bit digest of large files: tells weights apart, is no protection against anyone who
// means harm.
#pragma once

#include <cstdint>
#include <string_view>

namespace aerie {

// The same on every machine. Chain it over several files by passing the last result as `seed`.
uint64_t Fingerprint64(std::string_view bytes, uint64_t seed = 0);

}  // namespace aerie
