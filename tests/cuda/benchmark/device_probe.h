// What a device does at best, as measured: how fast its memory is copied, and how fast one large
// product goes.
//
// Times are the least of several: other work on the device only ever adds to them.
#pragma once

#include <cstdint>

#include "server/kernels/cuda/device.h"

namespace aerie {

// Seconds for moving `bytes` in all, half of them read and half written, as one of many copies that
// are given to the device together. Throws DeviceError.
double CopySeconds(Device& device, int64_t bytes);

// Operations a second (a product and its sum are two) of `size` / 2 rows times a matrix of bfloat16
// with `size` channels and inputs. Throws DeviceError.
double ProductRate(Device& device, int64_t size);

}  // namespace aerie
