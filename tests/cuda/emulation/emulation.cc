// Blocks, warps and the runtime's calls.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

#include "tests/cuda/emulation/cuda_runtime.h"
#include "tests/cuda/emulation/fibers.h"

// Launches that were recorded, in order.
struct EmulatedGraph {
  std::vector<std::function<void()>> launches;
};
struct EmulatedStream {
  EmulatedGraph* recording = nullptr;
};

dim3 threadIdx, blockIdx, gridDim;

namespace aerie_emulation {

namespace {

constexpr int kLanes = 32;

enum class Waits { kNot, kForWarp, kForBlock, kEnded };

struct Warp {
  int arrived = 0;
  uint32_t turn = 0;
  // Of this exchange and the last: whoever is quick may be one ahead.
  uint64_t given[2][kLanes];
};

ThreadOrder order = ThreadOrder::kForward;
int device_count = 1, device_major = 9, device_minor = 0;
bool fail_once = false;
int64_t launch_count = 0, copy_count = 0, allocation_count = 0;

Fibers fibers;
int threads = 0, current = 0, at_block = 0;
std::vector<Waits> waits;
std::vector<Warp> warps;

[[noreturn]] void Stop(const char* what) {
  std::fprintf(stderr, "emulated kernel, block %u %u %u: %s; a device would hang\n", blockIdx.x,
               blockIdx.y, blockIdx.z, what);
  std::abort();
}

void RunBlock(const std::function<void()>& thread, std::vector<int>& numbers) {
  waits.assign(threads, Waits::kNot);
  warps.assign(threads / kLanes, Warp());
  at_block = 0;
  fibers.Start(threads, &thread);
  // 32 threads at a time, which in order are a warp, are run as far as they come by themselves: one
  // warp may be far ahead of another.
  for (int left = threads; left > 0;) {
    bool moved = false;
    for (int first = 0; first < threads; first += kLanes) {
      for (bool again = true; again;) {
        again = false;
        for (int i = first; i < first + kLanes; ++i) {
          const int number = numbers[i];
          if (waits[number] != Waits::kNot) continue;
          again = moved = true;
          current = number;
          threadIdx = dim3(static_cast<unsigned>(number));
          if (!fibers.Resume(number)) {
            waits[number] = Waits::kEnded;
            --left;
          }
        }
      }
    }
    if (!moved) Stop("threads wait for others that wait elsewhere or have ended");
  }
}

void RunGrid(dim3 grid, dim3 block, const std::function<void()>& thread) {
  ++launch_count;
  gridDim = grid;
  threads = static_cast<int>(block.x);
  if (threads % kLanes != 0 || block.y != 1 || block.z != 1)
    Stop("blocks are whole warps in a row");
  std::vector<int> numbers(threads);
  std::iota(numbers.begin(), numbers.end(), 0);
  if (order == ThreadOrder::kBackward) std::reverse(numbers.begin(), numbers.end());
  std::mt19937 random(7);
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        if (order == ThreadOrder::kShuffled) std::shuffle(numbers.begin(), numbers.end(), random);
        blockIdx = dim3(x, y, z);
        RunBlock(thread, numbers);
      }
    }
  }
}

void Wait(Waits what) {
  const int self = current;
  waits[self] = what;
  fibers.GiveWay();
  current = self;
  threadIdx = dim3(static_cast<unsigned>(self));
}

bool Fails() { return std::exchange(fail_once, false); }

void Give(cudaStream_t stream, std::function<void()> launch) {
  if (stream->recording != nullptr) {
    stream->recording->launches.push_back(std::move(launch));
  } else {
    launch();
  }
}

}  // namespace

void SetThreadOrder(ThreadOrder new_order) { order = new_order; }
void SetDevice(int count, int major, int minor) {
  device_count = count;
  device_major = major;
  device_minor = minor;
}
void FailOnce() { fail_once = true; }
int64_t LaunchCount() { return launch_count; }
int64_t CopyCount() { return copy_count; }
int64_t AllocationCount() { return allocation_count; }

int CurrentLane() { return current % kLanes; }

void SyncBlock() {
  if (++at_block < threads) return Wait(Waits::kForBlock);
  at_block = 0;
  for (Waits& wait : waits) {
    if (wait == Waits::kForBlock) wait = Waits::kNot;
  }
}

uint64_t Exchange(uint64_t bits, int lane) {
  const int first = current / kLanes * kLanes;
  Warp& warp = warps[current / kLanes];
  uint64_t(&given)[kLanes] = warp.given[warp.turn % 2];
  given[current - first] = bits;
  if (++warp.arrived < kLanes) {
    Wait(Waits::kForWarp);
  } else {
    warp.arrived = 0;
    ++warp.turn;
    for (int i = first; i < first + kLanes; ++i) {
      if (waits[i] == Waits::kForWarp) waits[i] = Waits::kNot;
    }
  }
  return given[lane];
}

cudaError_t LaunchGrid(const cudaLaunchConfig_t& config, std::function<void()> thread) {
  if (Fails()) return cudaErrorLaunchFailure;
  const dim3 grid = config.gridDim, block = config.blockDim;
  if (grid.y > 65535 || grid.z > 65535 || block.x > 1024) return cudaErrorInvalidValue;
  Give(config.stream, [grid, block, thread = std::move(thread)] { RunGrid(grid, block, thread); });
  return cudaSuccess;
}

cudaError_t LaunchWork(cudaStream_t stream, std::function<void()> work) {
  if (Fails()) return cudaErrorLaunchFailure;
  Give(stream, std::move(work));
  return cudaSuccess;
}

}  // namespace aerie_emulation

using namespace aerie_emulation;  // NOLINT: the functions below are the runtime's own

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorLaunchFailure:
      break;
  }
  return "unspecified launch failure";
}
const char* cudaGetErrorName(cudaError_t) { return "emulated"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count;
  return device_count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulated on the CPU", device_major, device_minor, size_t{1} << 36};
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }

// Filled with what is no number, as nobody clears a device's memory either.
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (Fails()) return cudaErrorMemoryAllocation;
  ++allocation_count;
  const size_t size = (bytes + 255) / 256 * 256;
  *memory = std::aligned_alloc(256, size);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xff, size);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaMalloc(memory, bytes); }
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (stream->recording != nullptr || Fails()) return cudaErrorLaunchFailure;
  ++copy_count;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new EmulatedStream();
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->recording = new EmulatedGraph();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = std::exchange(stream->recording, nullptr);
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, uint64_t) {
  *exec = new EmulatedGraph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
  if (Fails()) return cudaErrorLaunchFailure;
  for (const auto& launch : exec->launches) launch();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return cudaSuccess;
}
