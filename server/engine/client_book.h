// Whom sessions and calls belong to. A client is a name that workers give; those that give none are
// one client together, and so are all calls without a session.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "server/engine/draft_call.h"

namespace aerie {

struct Client {
  std::string name;
  int32_t number = 0;    // no other client that is here now has it
  int32_t weight = 1;    // its share of a pass against the others'
  int32_t sessions = 0;  // stateless calls under way included
  int32_t queued = 0;    // draft calls before their first pass
};

// Engine thread only. Names come from outside, so a client without sessions is forgotten.
class ClientBook {
 public:
  explicit ClientBook(const EngineOptions& options) : options_(options) {}

  // The client, with a session more. RESOURCE_EXHAUSTED, reason CLIENT_LIMIT: it has its maximum.
  absl::StatusOr<Client*> AddSession(const std::string& name);
  // The client may be gone afterwards. None of its calls may wait for this session.
  void RemoveSession(Client* client);
  // RESOURCE_EXHAUSTED, reason CLIENT_LIMIT: as many of its calls wait as may.
  absl::Status CheckQueue(const Client& client) const;

  size_t size() const { return clients_.size(); }

 private:
  const EngineOptions options_;
  std::map<std::string, Client> clients_;
  int32_t last_number_ = 0;
};

}  // namespace aerie
