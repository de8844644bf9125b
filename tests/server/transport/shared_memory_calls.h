// Calls with rows in shared memory, for tests.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/server/transport/in_process_server.h"
#include "tests/server/transport/test_segment.h"

namespace aerie {

// Of a server that takes rows in shared memory.
InProcessOptions Allowed();

absl::StatusOr<v1::RegisterSharedMemoryResponse> Register(
    v1::DraftService::Stub& stub, const v1::RegisterSharedMemoryRequest& request);
// The id; fails the test when it is refused.
std::string Registered(v1::DraftService::Stub& stub, const TestSegment& segment);
// `call` with its rows in a slot of `segment` at `offset`.
v1::DraftRequest Moved(v1::DraftRequest call, TestSegment& segment, const std::string& id,
                       int64_t offset = 64, uint64_t stamp = 7);
absl::Status Draft(v1::DraftService::Stub& stub, const v1::DraftRequest& call,
                   v1::DraftResponse* response);
void ExpectRefused(const absl::Status& status, absl::StatusCode code, const std::string& reason,
                   const std::string& words);

}  // namespace aerie
