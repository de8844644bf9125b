// What is said when a device is missing, old, full or broken, and that waits which not all threads
// reach are noticed.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/kernels/cuda/device.h"
#include "tests/cuda/emulation/order.h"

namespace aerie {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The message of opening `number`, or "" when it opens.
std::string Refusal(int32_t number, DeviceError::Kind kind) {
  try {
    emulated::OpenDevice(number);
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "";
}

class DeviceTest : public testing::Test {
 protected:
  void TearDown() override { aerie_emulation::SetDevice(1, 9, 0); }
};

TEST_F(DeviceTest, AMachineWithoutADeviceSaysWhatIsMissing) {
  aerie_emulation::SetDevice(0, 0, 0);
  EXPECT_THAT(Refusal(0, DeviceError::Kind::kAbsent),
              AllOf(HasSubstr("finds no device (no CUDA-capable device"), HasSubstr("expected"),
                    HasSubstr("--device cpu")));
}

TEST_F(DeviceTest, ANumberThatNoDeviceHasIsRefusedWithThoseThatAreThere) {
  aerie_emulation::SetDevice(2, 9, 0);
  EXPECT_THAT(Refusal(2, DeviceError::Kind::kAbsent),
              AllOf(HasSubstr("no CUDA device 2"), HasSubstr("0..1")));
  EXPECT_EQ(Refusal(1, DeviceError::Kind::kAbsent), "");
}

TEST_F(DeviceTest, ADeviceThatTheKernelsWereNotBuiltForIsRefused) {
  aerie_emulation::SetDevice(1, 7, 5);
  EXPECT_THAT(Refusal(0, DeviceError::Kind::kAbsent),
              AllOf(HasSubstr("capability 7.5"), HasSubstr("8.0 or later")));
}

TEST_F(DeviceTest, MemoryThatRanOutIsToldApartFromOtherFailures) {
  const auto device = emulated::OpenDevice(0);
  aerie_emulation::FailOnce();
  try {
    device->Allocate(MemoryKind::kDevice, 1000);
    FAIL() << "memory was given";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.kind(), DeviceError::Kind::kMemory);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("out of memory"), HasSubstr("--kv-memory")));
  }
  void* const memory = device->Allocate(MemoryKind::kDevice, 64);
  aerie_emulation::FailOnce();
  try {
    device->CopyWithin(memory, static_cast<char*>(memory) + 32, 32);
    FAIL() << "the copy was made";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.kind(), DeviceError::Kind::kFailed);
    EXPECT_THAT(error.what(), HasSubstr("copying within the device"));
  }
  device->Free(MemoryKind::kDevice, memory);
}

}  // namespace
}  // namespace aerie
