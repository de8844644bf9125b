// What tests may set of the emulated device, without the emulated CUDA header.
#pragma once

#include <cstdint>

namespace aerie_emulation {

// In which order the threads of a block are run.
enum class ThreadOrder { kForward, kBackward, kShuffled };
void SetThreadOrder(ThreadOrder order);
// How many devices there are, and their compute capability.
void SetDevice(int count, int major, int minor);
// The next call that may fail does: an allocation for want of memory, anything else as a launch.
void FailOnce();
// So far: kernels that were run, those of graphs included; copies; and blocks of memory.
int64_t LaunchCount();
int64_t CopyCount();
int64_t AllocationCount();
// Whether devices that are opened from now on have a library for products of many rows, and how
// many it has done.
void SetGemm(bool there);
int64_t GemmCount();

}  // namespace aerie_emulation
