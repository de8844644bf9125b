// Functions that run in turn on stacks of their own, each until it gives way.
//
// One thread of the CPU at a time. A fiber must end, and must not throw.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace aerie_emulation {

class Fibers {
 public:
  Fibers();
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Fibers 0..count-1 will run `body` from its start.
  void Start(int count, const std::function<void()>* body);
  // Runs a fiber until it gives way or ends; returns whether it may run again.
  bool Resume(int fiber);
  // Called within a fiber.
  void GiveWay();

 private:
  struct State;
  static void Enter();

  std::vector<std::unique_ptr<State>> states_;
  void* caller_ = nullptr;  // where the resuming stack stands
  State* running_ = nullptr;
  const std::function<void()>* body_ = nullptr;
};

}  // namespace aerie_emulation
