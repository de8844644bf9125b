// A draft server that drafts nothing: it answers at once with the same tokens, so that a load test
// of it measures the tester, gRPC and the network.
//
// It keeps of each session what a record needs and no more, so that counts can still be compared.
// Chains only; it takes no trees, no sampling, no forks. It looks at no rows and no token's range:
// malformed calls find it pleased with them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace aerie::loadtest {

struct NullServerOptions {
  std::string listen = "127.0.0.1:0";  // host:port or unix:PATH
  int32_t hidden_size = 64, captures = 3, vocab_size = 32000, max_k = 32;
};

class NullServer {
 public:
  // UNAVAILABLE: the address cannot be listened on.
  static absl::StatusOr<std::unique_ptr<NullServer>> Start(const NullServerOptions& options);
  // Cuts all connections.
  virtual ~NullServer() = default;

  // With the port that was found for port 0.
  virtual const std::string& address() const = 0;
};

}  // namespace aerie::loadtest
