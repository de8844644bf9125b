// A switch saves the registers that a called function must keep, on the stack that it leaves. On
// x86-64 it is written out: the C library's swapcontext() asks the kernel for the signal mask every
// time, and an emulated warp switches a few hundred times for one sum.
#include "tests/cuda/emulation/fibers.h"

#include <cstdint>
#include <cstdlib>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace aerie_emulation {
namespace {

constexpr size_t kStackBytes = 64 << 10;
thread_local Fibers* entering = nullptr;

}  // namespace

#if defined(__x86_64__)

extern "C" void aerie_switch_stack(void** from, void* to);
asm(R"(
.text
.globl aerie_switch_stack
.type aerie_switch_stack,@function
aerie_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size aerie_switch_stack,.-aerie_switch_stack
)");

struct Fibers::State {
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  void* at = nullptr;
  bool done = true;
};

void Fibers::Start(int count, const std::function<void()>* body) {
  body_ = body;
  while (static_cast<int>(states_.size()) < count) states_.push_back(std::make_unique<State>());
  for (int i = 0; i < count; ++i) {
    State& state = *states_[i];
    const auto end =
        (reinterpret_cast<uintptr_t>(state.stack.get()) + kStackBytes) & ~uintptr_t{15};
    // Six registers, the address that the switch returns to, and a place for the one that the
    // entered function believes to return to.
    auto* const top = reinterpret_cast<void**>(end) - 8;
    for (int j = 0; j < 8; ++j) top[j] = nullptr;
    top[6] = reinterpret_cast<void*>(&Fibers::Enter);
    state.at = top;
    state.done = false;
  }
}

bool Fibers::Resume(int fiber) {
  running_ = states_[fiber].get();
  entering = this;
  aerie_switch_stack(&caller_, running_->at);
  return !running_->done;
}

void Fibers::GiveWay() { aerie_switch_stack(&running_->at, caller_); }

void Fibers::Enter() {
  Fibers* const fibers = entering;
  (*fibers->body_)();
  fibers->running_->done = true;
  fibers->GiveWay();
  std::abort();  // a fiber that has ended is not resumed
}

#else

struct Fibers::State {
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  ucontext_t at = {}, back = {};
  bool done = true;
};

void Fibers::Start(int count, const std::function<void()>* body) {
  body_ = body;
  while (static_cast<int>(states_.size()) < count) states_.push_back(std::make_unique<State>());
  for (int i = 0; i < count; ++i) {
    State& state = *states_[i];
    getcontext(&state.at);
    state.at.uc_stack.ss_sp = state.stack.get();
    state.at.uc_stack.ss_size = kStackBytes;
    state.at.uc_link = nullptr;
    makecontext(&state.at, &Fibers::Enter, 0);
    state.done = false;
  }
}

bool Fibers::Resume(int fiber) {
  running_ = states_[fiber].get();
  entering = this;
  swapcontext(&running_->back, &running_->at);
  return !running_->done;
}

void Fibers::GiveWay() { swapcontext(&running_->at, &running_->back); }

void Fibers::Enter() {
  Fibers* const fibers = entering;
  (*fibers->body_)();
  fibers->running_->done = true;
  fibers->GiveWay();
  std::abort();  // a fiber that has ended is not resumed
}

#endif

Fibers::Fibers() = default;
Fibers::~Fibers() = default;

}  // namespace aerie_emulation
