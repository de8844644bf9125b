// What a pass takes from the heap. A program of its own, because it replaces operator new.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/model/demo_head.h"
#include "tests/testing/status_matchers.h"

namespace {

std::atomic<int64_t> allocations = 0;

}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace aerie {
namespace {

// One extend row and one draft row of each slot, as a round of chains does; counts those of the
// second pass.
int64_t AllocationsOfAStep(DraftModel& model, std::vector<std::unique_ptr<OpenedSlot>>& slots,
                           Outputs extend_outputs) {
  std::vector<StepSequence> batch(slots.size());
  for (size_t i = 0; i < slots.size(); ++i)
    batch[i] = slots[i]->ExtendRows(Recording()[i], 1, extend_outputs);
  EXPECT_THAT(model.Step(batch, 1), IsOk());
  for (size_t i = 0; i < slots.size(); ++i) batch[i] = slots[i]->DraftRow(static_cast<int32_t>(i));
  const int64_t before = allocations;
  const auto outputs = model.Step(batch, 1);
  const int64_t after = allocations;
  EXPECT_THAT(outputs, IsOk());
  return after - before;
}

TEST(StepAllocationsTest, AWarmStepTakesOnlyWhatItReturns) {
  for (const ComputeDType dtype :
       {ComputeDType::kFloat32, ComputeDType::kBFloat16, ComputeDType::kInt8}) {
    const auto model = LoadDemo({.dtype = dtype, .threads = 2});
    for (const size_t count : {1, 3}) {
      std::vector<std::unique_ptr<OpenedSlot>> slots;
      for (size_t i = 0; i < count; ++i) {
        slots.push_back(std::make_unique<OpenedSlot>(*model));
        slots.back()->Extend(Recording()[i], 40, /*wants_output=*/false);
      }
      AllocationsOfAStep(*model, slots, Outputs::kLast);
      // The parts of the result; of each its rows; of each row its tokens.
      EXPECT_EQ(AllocationsOfAStep(*model, slots, Outputs::kLast),
                static_cast<int64_t>(1 + 2 * count));
    }
  }
}

}  // namespace
}  // namespace aerie
