// What a scaled rotation needs beside its type.
#pragma once

#include "server/checkpoint/rope_keys.h"
#include "server/checkpoint/rope_spec.h"

namespace aerie {

// Fills what `rope.type` uses.
void ReadRopeScaling(const RopeKeys& keys, RopeSpec& rope);

// Of yarn's amplitude: 0.1 weight ln(factor) + 1, and 1 when nothing is stretched.
double YarnMagnitude(double weight, double factor);

}  // namespace aerie
