// Set once by a transport thread when a client gives up; read by the engine between draft steps.
#pragma once

#include <atomic>

namespace aerie {

class CancelFlag {
 public:
  void Set() { set_.store(true, std::memory_order_relaxed); }
  bool IsSet() const { return set_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> set_{false};
};

}  // namespace aerie
