#include "tests/benchmarks/bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>

#include "server/kernels/cpu_level.h"

namespace aerie {
namespace {

constexpr int64_t kLargePage = int64_t{2} << 20;
// One thread's piece; as four streams, which the processor reads ahead of each.
constexpr int64_t kPiece = int64_t{256} << 10, kStreams = 4;

// What is read goes here, so that the reading is not left out.
std::atomic<uint64_t> sink;

typedef uint64_t Wide __attribute__((vector_size(64), aligned(64), may_alias));

AERIE_INLINE uint64_t SumOf(const std::byte* from, int64_t bytes) {
  Wide sums[kStreams] = {};
  const int64_t each = bytes / kStreams;
  for (int64_t i = 0; i < each; i += 64) {
#pragma GCC unroll 4
    for (int64_t s = 0; s < kStreams; ++s)
      sums[s] += *reinterpret_cast<const Wide*>(from + s * each + i);
  }
  const Wide sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  uint64_t total = 0;
  for (int i = 0; i < 8; ++i) total += sum[i];
  return total;
}

uint64_t SumBaseline(const std::byte* from, int64_t bytes) { return SumOf(from, bytes); }
AERIE_TARGET_AVX2 uint64_t SumAvx2(const std::byte* from, int64_t bytes) {
  return SumOf(from, bytes);
}
AERIE_TARGET_AVX512 uint64_t SumAvx512(const std::byte* from, int64_t bytes) {
  return SumOf(from, bytes);
}

uint64_t Sum(const std::byte* from, int64_t bytes) {
  switch (BestCpuLevel()) {
    case CpuLevel::kBaseline:
      break;
    case CpuLevel::kAvx2:
      return SumAvx2(from, bytes);
    case CpuLevel::kAvx512:
    case CpuLevel::kAvx512Vnni:
    case CpuLevel::kAvx512Bf16:
      return SumAvx512(from, bytes);
  }
  return SumBaseline(from, bytes);
}

}  // namespace

BandwidthProbe::BandwidthProbe(int64_t bytes, ThreadPool& pool)
    : bytes_((bytes + kPiece - 1) / kPiece * kPiece), pool_(pool) {
  data_ = static_cast<std::byte*>(::operator new (bytes_, std::align_val_t{kLargePage}));
  madvise(data_, bytes_, MADV_HUGEPAGE);
  std::memset(data_, 1, bytes_);
}

BandwidthProbe::~BandwidthProbe() { ::operator delete (data_, std::align_val_t{kLargePage}); }

void BandwidthProbe::Read() {
  pool_.Run(bytes_ / kPiece, [this](int64_t piece, int) {
    sink.fetch_xor(Sum(data_ + piece * kPiece, kPiece), std::memory_order_relaxed);
  });
}

}  // namespace aerie
