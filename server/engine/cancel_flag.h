// Set once by a transport thread when a client gives up; read by the engine between draft steps, as
// long as the call is not answered.
#pragma once

#include <atomic>

namespace aerie {

class CancelFlag {
 public:
  CancelFlag() = default;
  virtual ~CancelFlag() = default;
  CancelFlag(const CancelFlag&) = delete;
  CancelFlag& operator=(const CancelFlag&) = delete;

  void Set() { set_.store(true, std::memory_order_relaxed); }
  // A transport that hears of it elsewhere first may look there as well.
  virtual bool IsSet() const { return set_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> set_{false};
};

}  // namespace aerie
