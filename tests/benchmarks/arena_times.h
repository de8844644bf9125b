// What a protobuf arena would save of a call.
#pragma once

#include <cstdint>

namespace aerie {

// Microseconds to read a request and to write its answer, the least of many times, with the
// messages from the heap, as gRPC makes them, and from an arena.
struct ArenaTimes {
  double heap = 0.0, arena = 0.0;
};
ArenaTimes MeasureArenas(int64_t rows, int64_t row_bytes_in_all);

}  // namespace aerie
