// Checks of our own invariants. Bytes from outside never reach a CHECK: they give a Status.
#pragma once

#include <sstream>

namespace aerie {

// Collects the message of a failed check and ends the process when it is destroyed.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;

  template <typename T>
  CheckFailure& operator<<(const T& value) {
    message_ << value;
    return *this;
  }

 private:
  std::ostringstream message_;
};

}  // namespace aerie

// AERIE_CHECK(x > 0) << "more words";   aborts with file, line and condition when it is false.
#define AERIE_CHECK(condition) \
  if (condition) [[likely]] {  \
  } else                       \
    ::aerie::CheckFailure(__FILE__, __LINE__, #condition)
