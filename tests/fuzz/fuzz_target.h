// What a fuzz target consists of, and what its driver gives it: libFuzzer, or driver_main.cc.
//
// A target checks more than that nothing crashes: AERIE_CHECKs say what holds for everything that
// its decoder accepts.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// The target. Always returns 0.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Where a format is too strict for damaged bytes to get far: changes `data`, of `size` bytes with
// room for `max_size`, to other bytes of the format, and returns how many they are. Equal seeds
// make equal changes.
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                                     unsigned seed);

// The driver's own way to change bytes, for mutators. Returns the new size.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

}  // extern "C"
