// Damages bytes in ways that are about no format.
#pragma once

#include <cstddef>
#include <random>
#include <string>

namespace aerie {

// 0 <= number < limit.
size_t Below(size_t limit, std::mt19937_64* random);

// One change: a bit, a byte, a piece that is dropped, repeated, moved or replaced, an early end.
// Equal states of `random` make equal changes.
void Damage(std::string* bytes, std::mt19937_64* random);

}  // namespace aerie
