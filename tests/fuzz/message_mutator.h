// Changes protobuf messages: what bytes damaged at random hardly ever become, a message that is
// well-formed and wrong.
#pragma once

#include <random>

#include "google/protobuf/message.h"

namespace aerie {

// Changes one field of `message` or of a message within it: to a value at the edge of its type, to
// another nearby, to unset; in lists also by adding, repeating, dropping and swapping. Strings stay
// UTF-8. Equal states of `random` make equal changes.
void MutateMessage(google::protobuf::Message* message, std::mt19937_64* random);

}  // namespace aerie
