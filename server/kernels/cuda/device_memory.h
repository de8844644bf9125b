// Memory of a device, and pinned memory of the host, that belongs to somebody.
#pragma once

#include <cstdint>
#include <utility>

#include "server/kernels/cuda/device.h"

namespace aerie {

// One block; what is in it is lost when it grows. `device` outlives it. Throws DeviceError.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, MemoryKind kind) : device_(&device), kind_(kind) {}
  DeviceMemory(DeviceMemory&& other) noexcept { *this = std::move(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(kind_, other.kind_);
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceMemory() { Free(); }

  // Makes it hold `count` elements at least; whether it has moved for that. A block that moves
  // takes half as much again, so that rows that come one more at a time move it seldom.
  template <typename T>
  bool Reserve(int64_t count) {
    const int64_t wanted = count * static_cast<int64_t>(sizeof(T));
    if (wanted <= bytes_) return false;
    const int64_t bytes = bytes_ == 0 ? wanted : wanted + wanted / 2;
    Free();
    memory_ = device_->Allocate(kind_, bytes);
    bytes_ = bytes;
    return true;
  }

  template <typename T>
  T* Get() const {
    return static_cast<T*>(memory_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  void Free() {
    if (memory_ != nullptr) device_->Free(kind_, std::exchange(memory_, nullptr));
    bytes_ = 0;
  }

  Device* device_ = nullptr;
  MemoryKind kind_ = MemoryKind::kDevice;
  void* memory_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace aerie
