// What CUDA reports, as the exception that device.h promises. Private to this folder.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "server/kernels/cuda/device.h"

namespace aerie {
namespace AERIE_CUDA_NAMESPACE {

inline void Check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  const std::string seen = std::string("CUDA failed while ") + doing + ": " +
                           cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")";
  cudaGetLastError();  // or the next call would report it once more
  if (error == cudaErrorMemoryAllocation) {
    throw DeviceError(DeviceError::Kind::kMemory,
                      seen +
                          "; expected room on the device for weights, rows and draft KV; give "
                          "less to --kv-memory, or free memory of the device");
  }
  throw DeviceError(DeviceError::Kind::kFailed,
                    seen +
                        "; expected a working device; look at nvidia-smi and the system's log, "
                        "and start the server again");
}

}  // namespace AERIE_CUDA_NAMESPACE
}  // namespace aerie
