#include "tests/cuda/backends.h"

#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/cuda/emulation/order.h"

namespace aerie {

std::vector<Backend> Backends() {
  return {{"EmulatedForward", BackendKind::kForward},
          {"EmulatedBackward", BackendKind::kBackward},
          {"EmulatedShuffled", BackendKind::kShuffled},
          {"Device", BackendKind::kDevice}};
}

bool DeviceIsRequired() {
  const char* const value = std::getenv("AERIE_REQUIRE_CUDA");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

std::unique_ptr<Device> OpenBackend(BackendKind kind, std::string& why) {
  using aerie_emulation::ThreadOrder;
  if (kind != BackendKind::kDevice) {
    aerie_emulation::SetThreadOrder(kind == BackendKind::kForward    ? ThreadOrder::kForward
                                    : kind == BackendKind::kBackward ? ThreadOrder::kBackward
                                                                     : ThreadOrder::kShuffled);
    return emulated::OpenDevice(0);
  }
#if AERIE_WITH_CUDA
  try {
    return cuda::OpenDevice(0);
  } catch (const DeviceError& error) {
    why = error.what();
  }
#else
  why = "this build has no CUDA; expected one of the preset cuda; cmake --preset cuda";
#endif
  return nullptr;
}

void BackendTest::SetUp() {
  std::string why;
  device_ = OpenBackend(GetParam().kind, why);
  if (device_ != nullptr) return;
  if (DeviceIsRequired()) FAIL() << why;
  GTEST_SKIP() << why;
}

void BackendTest::TearDown() {
  for (void* const memory : memory_) device_->Free(MemoryKind::kDevice, memory);
  for (void* const memory : pinned_) device_->Free(MemoryKind::kPinned, memory);
}

void* BackendTest::Put(const void* from, size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  memory_.push_back(device_->Allocate(MemoryKind::kDevice, size));
  if (from != nullptr && bytes > 0) {
    pinned_.push_back(device_->Allocate(MemoryKind::kPinned, size));
    std::memcpy(pinned_.back(), from, bytes);
    device_->CopyIn(memory_.back(), pinned_.back(), size);
    device_->Synchronize();
  }
  return memory_.back();
}

void BackendTest::Get(void* to, const void* from, size_t bytes) {
  pinned_.push_back(device_->Allocate(MemoryKind::kPinned, static_cast<int64_t>(bytes)));
  device_->CopyOut(pinned_.back(), from, static_cast<int64_t>(bytes));
  device_->Synchronize();
  std::memcpy(to, pinned_.back(), bytes);
}

std::vector<float> Numbers(uint32_t seed, size_t count) {
  std::mt19937 random(seed);
  std::vector<float> numbers(count);
  for (float& number : numbers)
    number = static_cast<float>(static_cast<int32_t>(random() >> 8) - (1 << 23)) / (1 << 23);
  return numbers;
}

uint16_t Bf16Of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float OfBf16(uint16_t half) {
  const uint32_t bits = uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace aerie
