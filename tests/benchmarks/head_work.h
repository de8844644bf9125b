// What a draft step and an extend of a head have to do: elements of its matrices.
#pragma once

#include <cstdint>

#include "server/checkpoint/checkpoint.h"

namespace aerie {

// Weights of a draft row and of an extend row, in elements and in matrices' rows.
struct HeadWork {
  int64_t step_elements = 0, step_channels = 0;
  int64_t prompt_elements = 0;  // of an extend row whose output nobody wants
};

HeadWork WorkOf(const Checkpoint& checkpoint);

}  // namespace aerie
