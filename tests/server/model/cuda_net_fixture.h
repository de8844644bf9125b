// The net of CUDA devices on the emulation of a device, and on a device where there is one.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/model/cuda_net.h"
#include "tests/cuda/backends.h"
#include "tests/server/model/net_models.h"
#include "tests/testing/status_matchers.h"

namespace aerie {

struct Loaded {
  CudaNet* net = nullptr;
  std::unique_ptr<Eagle3Model> model;
};

class CudaNetTest : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    std::string why;
    if (OpenBackend(GetParam().kind, why) != nullptr) return;
    if (DeviceIsRequired()) FAIL() << why;
    GTEST_SKIP() << why;
  }

  Loaded OnDevice(const Checkpoint& checkpoint, DeviceElement element) {
    std::string why;
    auto net = CudaNet::Load(checkpoint, element, OpenBackend(GetParam().kind, why));
    EXPECT_THAT(net, IsOk());
    CudaNet* const at = net->get();
    return {at, ModelOf(checkpoint, *std::move(net))};
  }
};

inline std::vector<Backend> NetBackends() {
  return {{"Emulated", BackendKind::kForward}, {"Device", BackendKind::kDevice}};
}

}  // namespace aerie
