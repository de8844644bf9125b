#include "tests/cuda/benchmark/device_probe.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "common/float16.h"
#include "server/kernels/cuda/device_memory.h"

namespace aerie {
namespace {

constexpr int kTurns = 5;

double LeastSeconds(Device& device, const std::function<void()>& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < kTurns; ++turn) {
    device.Synchronize();
    const auto start = std::chrono::steady_clock::now();
    work();
    device.Synchronize();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  return least;
}

// `bytes` of the device, filled with `block` again and again: memory as it was given may hold NaN,
// and zeros take less power than numbers do.
template <typename T>
void Fill(Device& device, const std::vector<T>& block, void* to, int64_t bytes) {
  const auto step = static_cast<int64_t>(block.size() * sizeof(T));
  DeviceMemory pinned(device, MemoryKind::kPinned);
  pinned.Reserve<std::byte>(step);
  std::memcpy(pinned.Get<std::byte>(), block.data(), static_cast<size_t>(step));
  for (int64_t at = 0; at < bytes; at += step) {
    device.CopyIn(static_cast<std::byte*>(to) + at, pinned.Get<std::byte>(),
                  std::min(step, bytes - at));
  }
  device.Synchronize();
}

}  // namespace

double CopySeconds(Device& device, int64_t bytes) {
  constexpr int kCopies = 8;
  const int64_t half = std::max<int64_t>(1, bytes / 2);
  DeviceMemory from(device, MemoryKind::kDevice), to(device, MemoryKind::kDevice);
  from.Reserve<std::byte>(half);
  to.Reserve<std::byte>(half);
  Fill(device, std::vector<float>(4096, 1.5f), from.Get<std::byte>(), half);
  return LeastSeconds(device,
                      [&] {
                        for (int i = 0; i < kCopies; ++i)
                          device.CopyWithin(to.Get<std::byte>(), from.Get<std::byte>(), half);
                      }) /
         kCopies;
}

double ProductRate(Device& device, int64_t size) {
  const int64_t rows = size / 2;
  std::mt19937 random(7);
  std::vector<float> numbers(1 << 16);
  for (float& number : numbers) number = static_cast<float>(random() % 2048) / 1024.0f - 1.0f;
  std::vector<uint16_t> halves;
  for (const float number : numbers) halves.push_back(FloatToBf16(number));
  const DeviceMatrix shape = {
      .channels = size,
      .inputs = size,
      .stride = (size + kStrideElements - 1) / kStrideElements * kStrideElements,
      .element = DeviceElement::kBFloat16};
  DeviceMemory weights(device, MemoryKind::kDevice), in(device, MemoryKind::kDevice),
      out(device, MemoryKind::kDevice);
  weights.Reserve<uint16_t>(size * shape.stride);
  in.Reserve<float>(rows * size);
  out.Reserve<float>(rows * size);
  Fill(device, halves, weights.Get<std::byte>(), size * shape.stride * 2);
  Fill(device, numbers, in.Get<std::byte>(), rows * size * 4);
  ProductOp op = {.matrix = shape,
                  .channels = size,
                  .rows = static_cast<int32_t>(rows),
                  .in = in.Get<float>(),
                  .in_stride = size,
                  .out = out.Get<float>(),
                  .out_stride = size};
  op.matrix.weights = weights.Get<std::byte>();
  return 2.0 * static_cast<double>(rows) * static_cast<double>(size * size) /
         LeastSeconds(device, [&] { device.Run(op); });
}

}  // namespace aerie
