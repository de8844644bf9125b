// One CUDA device as the drafter uses it: memory, copies, operations and recorded sequences of
// these, all in the order of one stream.
//
// Two things stand behind this interface, made from the same sources: the device itself, and an
// emulation on the CPU for tests. Whoever includes this sees no CUDA header.
//
// A copy from or to the host must be given pinned memory, which stays as it is until Synchronize().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "server/kernels/cuda/ops.h"

namespace aerie {

// The message has the three parts: what was seen, what was expected, what to do.
class DeviceError : public std::runtime_error {
 public:
  enum class Kind {
    kAbsent,  // no such device, no driver, or one that this program was not built for
    kMemory,  // of the device, or pinned
    kFailed,  // anything else; the device may be lost to this process
  };
  DeviceError(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

struct DeviceTraits {
  std::string name;  // "NVIDIA H200"
  int32_t major = 0, minor = 0;
  int64_t memory_bytes = 0;
  std::string gemm;     // what does products of many rows, "cuBLAS 13.1.0"; "" without
  std::string no_gemm;  // why there is none; the kernels of few rows do them then
};

// Device memory that grows and is kept, or pinned memory of the host. Addresses are multiples of
// 256.
enum class MemoryKind { kDevice, kPinned };

// One thread at a time. Everything throws DeviceError.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceTraits& traits() const = 0;

  virtual void* Allocate(MemoryKind kind, int64_t bytes) = 0;
  // Waits for the device first.
  virtual void Free(MemoryKind kind, void* memory) = 0;

  virtual void CopyIn(void* device, const void* pinned, int64_t bytes) = 0;
  virtual void CopyOut(void* pinned, const void* device, int64_t bytes) = 0;
  virtual void CopyWithin(void* to, const void* from, int64_t bytes) = 0;
  virtual void Synchronize() = 0;

  // Takes the memory that products of many rows with such a matrix want; they take none later.
  virtual void PrepareProducts(const DeviceMatrix& matrix) = 0;

  virtual void Run(const ProductOp& op) = 0;
  virtual void Run(const NormOp& op) = 0;
  virtual void Run(const PrepareOp& op) = 0;
  virtual void Run(const TurnOp& op) = 0;
  virtual void Run(const AttendOp& op) = 0;
  virtual void Run(const RankOp& op) = 0;

  // Operations that `work` runs are recorded and not done; it may do nothing else here. Returns a
  // number for Replay(), which does all of them with the arguments that they were given.
  virtual int32_t Record(const std::function<void()>& work) = 0;
  virtual void Replay(int32_t recording) = 0;
  virtual void ForgetRecordings() = 0;
};

// The device with this number; the runtime that it needs is linked in, the driver is looked for
// now. Throws kAbsent.
namespace cuda {
std::unique_ptr<Device> OpenDevice(int32_t number);
}
// The same sources on the CPU, for tests; only programs that link the emulation have it.
namespace emulated {
std::unique_ptr<Device> OpenDevice(int32_t number);
}

}  // namespace aerie
