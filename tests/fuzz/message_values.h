// What a field of a message may be changed to: values at the edge of its type, and others nearby.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

namespace aerie {

class MessageValues {
 public:
  explicit MessageValues(std::mt19937_64* random) : random_(*random) {}

  uint64_t Draw() { return random_(); }
  // 0 <= number < limit.
  size_t Below(size_t limit);

  template <typename Int>
  Int Integer(Int now) {
    using Limits = std::numeric_limits<Int>;
    switch (Below(10)) {
      case 0:
        return 0;
      case 1:
        return Limits::max();
      case 2:
        return Limits::min();
      case 3:
        return static_cast<Int>(std::numeric_limits<int32_t>::max());
      case 4:
        return static_cast<Int>(static_cast<uint64_t>(now) + 1);
      case 5:
        return static_cast<Int>(static_cast<uint64_t>(now) - 1);
      case 6:
        return static_cast<Int>(Draw());
      case 7:
        return static_cast<Int>(uint64_t{1} << Below(64));
      default:
        return static_cast<Int>(Below(12));
    }
  }

  float Real(float now);
  // UTF-8.
  std::string Text(const std::string& now);
  // Also with values put into it that are no finite float32.
  std::string Bytes(std::string bytes);

 private:
  std::mt19937_64& random_;
};

}  // namespace aerie
