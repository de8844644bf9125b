// How fast memory of a given size is read: the floor of a draft step. What fits into a cache is
// read from it, so the size matters, and so does the number of threads.
#pragma once

#include <cstdint>
#include <memory>

#include "server/kernels/thread_pool.h"

namespace aerie {

class BandwidthProbe {
 public:
  // `bytes` of memory of its own, on large pages where the system has them, as weights are.
  BandwidthProbe(int64_t bytes, ThreadPool& pool);
  ~BandwidthProbe();
  BandwidthProbe(const BandwidthProbe&) = delete;

  int64_t bytes() const { return bytes_; }
  // Reads all of it once on all threads, in the widest vectors of the CPU.
  void Read();

 private:
  int64_t bytes_;
  ThreadPool& pool_;
  std::byte* data_;
};

}  // namespace aerie
