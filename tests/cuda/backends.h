// Where the kernels of server/kernels/cuda are run by tests: on the CPU, thread by thread in
// several orders, and on a device when there is one.
//
// Without a device its cases are skipped, and say so; with AERIE_REQUIRE_CUDA=1 in the environment
// they fail instead.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/kernels/cuda/device.h"

namespace aerie {

enum class BackendKind { kForward, kBackward, kShuffled, kDevice };

struct Backend {
  std::string name;
  BackendKind kind;
};
std::vector<Backend> Backends();

// Null where there is none; `why` tells.
std::unique_ptr<Device> OpenBackend(BackendKind kind, std::string& why);
// AERIE_REQUIRE_CUDA=1.
bool DeviceIsRequired();

class BackendTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override;
  void TearDown() override;

  Device& device() { return *device_; }

  // A copy of `values` on the device, or room for so many; lives as long as the test.
  template <typename T>
  T* In(const std::vector<T>& values) {
    return static_cast<T*>(Put(values.data(), values.size() * sizeof(T)));
  }
  template <typename T>
  T* Room(size_t count) {
    return static_cast<T*>(Put(nullptr, count * sizeof(T)));
  }
  template <typename T>
  std::vector<T> Out(const T* at, size_t count) {
    std::vector<T> values(count);
    Get(values.data(), at, count * sizeof(T));
    return values;
  }

 private:
  void* Put(const void* from, size_t bytes);
  void Get(void* to, const void* from, size_t bytes);

  std::unique_ptr<Device> device_;
  std::vector<void*> memory_, pinned_;
};

// Numbers in -1..1, the same for the same seed.
std::vector<float> Numbers(uint32_t seed, size_t count);

uint16_t Bf16Of(float value);
float OfBf16(uint16_t bits);

}  // namespace aerie
