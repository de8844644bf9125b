// Random numbers without a state: the number at a place of a sequence is a function of the seed and
// of the place. So what a session draws depends neither on what shares its passes nor on how often
// a call was repeated.
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace aerie {

// The generator's block function: 128 bits for a counter and a key.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Uniform over 0 <= u < 1, with 53 random bits. All four arguments count in full.
double UniformAt(uint64_t seed, int64_t position, int32_t node, uint32_t draw);

}  // namespace aerie
