#include "server/engine/client_book.h"

#include "common/check.h"
#include "server/engine/refusals.h"

namespace aerie {

absl::StatusOr<Client*> ClientBook::AddSession(const std::string& name) {
  auto [place, added] = clients_.try_emplace(name);
  Client& client = place->second;
  if (added) {
    client.name = name;
    client.number = ++last_number_;
    const auto weight = options_.client_weights.find(name);
    if (weight != options_.client_weights.end()) client.weight = weight->second;
  }
  const int32_t most = options_.max_sessions_per_client;
  if (most > 0 && client.sessions >= most) return ClientSessionsError(name, most);
  ++client.sessions;
  return &client;
}

void ClientBook::RemoveSession(Client* client) {
  AERIE_CHECK(client->sessions > 0);
  if (--client->sessions > 0) return;
  AERIE_CHECK(client->queued == 0) << client->queued << " calls wait for no session";
  // A copy: the name dies with the client while erase() still reads it.
  const std::string name = client->name;
  clients_.erase(name);
}

absl::Status ClientBook::CheckQueue(const Client& client) const {
  const int32_t most = options_.max_queued_per_client;
  if (most == 0 || client.queued < most) return absl::OkStatus();
  return ClientQueueError(client.name, most);
}

}  // namespace aerie
