// As much of CUDA's runtime and language as server/kernels/cuda uses, on the CPU: the same sources
// are compiled against this header and run, thread by thread.
//
// A block's threads are fibers that run one at a time, each until it waits for its warp or its
// block. A wait that not all of them reach ends the program, as it would hang a device. In which
// order they run is settable: a kernel that forgets to wait reads, in one order or another, what
// has not been written yet. What is not emulated: time, memory that is written out of bounds
// (address sanitizer sees that, as memory of the device is the heap's), and other compilers'
// arithmetic.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#include "tests/cuda/emulation/order.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static  // blocks run one after the other
#define __launch_bounds__(...)

struct dim3 {
  constexpr dim3(unsigned x_in = 1, unsigned y_in = 1, unsigned z_in = 1)
      : x(x_in), y(y_in), z(z_in) {}
  unsigned x, y, z;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};

namespace aerie_emulation {

void SyncBlock();
// Gives `bits` to the warp and returns what `lane` gave.
uint64_t Exchange(uint64_t bits, int lane);
int CurrentLane();

template <typename T>
T ShuffleXor(T value, int step) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = Exchange(bits, CurrentLane() ^ step);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace aerie_emulation

// Of the thread that runs.
extern dim3 threadIdx, blockIdx, gridDim;

inline void __syncthreads() { aerie_emulation::SyncBlock(); }
template <typename T>
T __shfl_xor_sync(unsigned, T value, int step) {
  return aerie_emulation::ShuffleXor(value, step);
}
template <typename T>
T __ldg(const T* from) {
  return *from;
}
inline uint32_t __float_as_uint(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline float __uint_as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = uint64_t{high} << 32 | low;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t from = selector >> (4 * i) & 7;
    result |= static_cast<uint32_t>(bytes >> (8 * from) & 0xff) << (8 * i);
  }
  return result;
}
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline float rsqrtf(float value) { return 1.0f / std::sqrt(value); }
inline int min(int a, int b) { return a < b ? a : b; }

// The runtime. Everything happens at once, in the order of calls.
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100,
  cudaErrorLaunchFailure = 719,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
constexpr unsigned cudaStreamNonBlocking = 1;

struct EmulatedStream;
struct EmulatedGraph;
using cudaStream_t = EmulatedStream*;
using cudaGraph_t = EmulatedGraph*;
using cudaGraphExec_t = EmulatedGraph*;

struct cudaDeviceProp {
  char name[256];
  int major, minor;
  size_t totalGlobalMem;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};

const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaMallocHost(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, uint64_t flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

namespace aerie_emulation {

// Runs or records a grid; `thread` is the kernel with its arguments.
cudaError_t LaunchGrid(const cudaLaunchConfig_t& config, std::function<void()> thread);
// Likewise what a library does.
cudaError_t LaunchWork(cudaStream_t stream, std::function<void()> work);

}  // namespace aerie_emulation

template <typename... Expected, typename... Actual>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Expected...),
                               Actual&&... arguments) {
  // By value, as a device keeps them.
  std::tuple<Expected...> kept(std::forward<Actual>(arguments)...);
  return aerie_emulation::LaunchGrid(*config, [kernel, kept] { std::apply(kernel, kept); });
}
