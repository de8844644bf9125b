#include "server/engine/batcher.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "common/check.h"
#include "server/engine/fair_shares.h"

namespace aerie {
namespace {

// One client's rounds on their way into the plan.
struct ClientRounds {
  int32_t weight = 1;
  std::vector<size_t> queue;    // in the order in which they want places
  size_t next = 0;              // of the queue
  int64_t places = 0;           // that it got
  std::vector<size_t> extends;  // of the plan
};

bool Extends(const PassCandidate& candidate) { return candidate.extend_rows > 0; }

// In order of their oldest round. The queues are in order of arrival.
std::vector<ClientRounds> GroupByClient(absl::Span<const PassCandidate> candidates) {
  std::vector<ClientRounds> clients;
  std::unordered_map<int32_t, size_t> places;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const PassCandidate& candidate = candidates[i];
    const auto [place, is_new] = places.emplace(candidate.client, clients.size());
    if (is_new) clients.push_back({.weight = candidate.weight});
    ClientRounds& client = clients[place->second];
    AERIE_CHECK(candidate.weight == client.weight)
        << "client " << candidate.client << " has weights " << client.weight << " and "
        << candidate.weight;
    AERIE_CHECK(candidate.extend_rows >= 0 && (Extends(candidate) || candidate.draft_rows >= 1))
        << "a round without rows";
    client.queue.push_back(i);
  }
  return clients;
}

// The oldest round of all is the first one of the first client.
bool HoldsTheOldest(const std::vector<ClientRounds>& clients, const ClientRounds& client) {
  return &client == &clients.front();
}

// How many rows each client may take, when all its rounds had places.
std::vector<int64_t> EntitledRows(absl::Span<const PassCandidate> candidates,
                                  const std::vector<ClientRounds>& clients, int64_t max_rows,
                                  uint64_t pass) {
  std::vector<ShareClaim> claims;
  for (const ClientRounds& client : clients) {
    ShareClaim claim{.weight = client.weight};
    // A sum that no pass can take need not be exact.
    for (const size_t i : client.queue) {
      claim.most = std::min(claim.most + candidates[i].extend_rows, max_rows);
    }
    if (HoldsTheOldest(clients, client)) claim.least = Extends(candidates[0]) ? 1 : 0;
    claims.push_back(claim);
  }
  return DivideFairly(claims, max_rows, pass);
}

// Puts a client's rounds into the order in which they want places: draft rows, then the shortest
// extends, of which there are no more than rows for them.
void OrderQueue(absl::Span<const PassCandidate> candidates, bool first_stays, int64_t rows,
                std::vector<size_t>* queue) {
  std::stable_sort(queue->begin() + (first_stays ? 1 : 0), queue->end(), [&](size_t a, size_t b) {
    return candidates[a].extend_rows < candidates[b].extend_rows;
  });
  std::erase_if(*queue, [&](size_t i) { return Extends(candidates[i]) && --rows < 0; });
}

// A client's next round, waiting for a place.
struct Bid {
  size_t client = 0;
  size_t candidate = 0;
  int64_t places = 0;  // that the client would have then
  int32_t weight = 1;

  // By places for the weight, then by arrival. Reversed, for a queue that gives the largest first.
  bool operator<(const Bid& other) const {
    const int64_t mine = places * other.weight;
    const int64_t others = other.places * weight;
    return mine != others ? mine > others : candidate > other.candidate;
  }
};

class PlaceAuction {
 public:
  PlaceAuction(absl::Span<const PassCandidate> candidates, const PassLimits& limits,
               std::vector<ClientRounds>* clients)
      : candidates_(candidates), limits_(limits), clients_(*clients) {}

  // Candidates that run, drafts and extends; the latter are noted with their clients as well.
  std::vector<size_t> Run() {
    Place(0);  // the oldest, before anyone bids
    for (size_t client = 1; client < clients_.size(); ++client) PutBid(client);
    while (!bids_.empty() && plan_.size() < static_cast<size_t>(limits_.max_sessions)) {
      const Bid bid = bids_.top();
      bids_.pop();
      if (Fits(bid.candidate)) {
        Place(bid.client);
      } else {
        ++clients_[bid.client].next;
        PutBid(bid.client);
      }
    }
    return std::move(plan_);
  }

 private:
  bool Fits(size_t i) const {
    return Extends(candidates_[i]) || draft_rows_ == 0 ||
           draft_rows_ + candidates_[i].draft_rows <= limits_.max_draft_rows;
  }

  void Place(size_t index) {
    ClientRounds& client = clients_[index];
    const size_t i = client.queue[client.next++];
    ++client.places;
    plan_.push_back(i);
    if (Extends(candidates_[i])) {
      client.extends.push_back(i);
    } else {
      draft_rows_ += candidates_[i].draft_rows;
    }
    PutBid(index);
  }

  void PutBid(size_t index) {
    const ClientRounds& client = clients_[index];
    if (client.next == client.queue.size()) return;
    bids_.push({index, client.queue[client.next], client.places + 1, client.weight});
  }

  absl::Span<const PassCandidate> candidates_;
  const PassLimits& limits_;
  std::vector<ClientRounds>& clients_;
  std::priority_queue<Bid> bids_;
  std::vector<size_t> plan_;
  int64_t draft_rows_ = 0;
};

// Shares `rows` out between a client's extends, shortest first: whoever needs less than an equal
// part leaves the rest to the longer ones.
void ShareRows(absl::Span<const PassCandidate> candidates, std::vector<size_t> extends,
               int64_t rows, std::vector<int64_t>* shares) {
  std::stable_sort(extends.begin(), extends.end(), [&](size_t a, size_t b) {
    return candidates[a].extend_rows < candidates[b].extend_rows;
  });
  auto left = static_cast<int64_t>(extends.size());
  for (const size_t i : extends) {
    (*shares)[i] = std::min(candidates[i].extend_rows, rows / left);
    rows -= (*shares)[i];
    --left;
  }
}

}  // namespace

std::vector<PassShare> PlanPass(absl::Span<const PassCandidate> candidates,
                                const PassLimits& limits, uint64_t pass) {
  AERIE_CHECK(limits.max_rows >= 1 && limits.max_draft_rows >= 1 && limits.max_sessions >= 1);
  if (candidates.empty()) return {};
  // A lone round is what a server with one worker sees, and shares with nobody.
  if (candidates.size() == 1) {
    return {{0, std::min<int64_t>(candidates[0].extend_rows, limits.max_rows)}};
  }
  std::vector<ClientRounds> clients = GroupByClient(candidates);
  const std::vector<int64_t> entitled = EntitledRows(candidates, clients, limits.max_rows, pass);
  for (size_t c = 0; c < clients.size(); ++c) {
    OrderQueue(candidates, HoldsTheOldest(clients, clients[c]), entitled[c], &clients[c].queue);
  }
  std::vector<size_t> placed = PlaceAuction(candidates, limits, &clients).Run();

  // Everyone keeps what it was entitled to; what a round without a place leaves goes to the others.
  std::vector<ShareClaim> claims;
  for (size_t c = 0; c < clients.size(); ++c) {
    ShareClaim claim{.weight = clients[c].weight};
    for (const size_t i : clients[c].extends) claim.most += candidates[i].extend_rows;
    claim.least = std::min(entitled[c], claim.most);
    claims.push_back(claim);
  }
  const std::vector<int64_t> rows = DivideFairly(claims, limits.max_rows, pass);
  std::vector<int64_t> shares(candidates.size());
  for (size_t c = 0; c < clients.size(); ++c) {
    ShareRows(candidates, std::move(clients[c].extends), rows[c], &shares);
  }
  std::sort(placed.begin(), placed.end());
  std::vector<PassShare> plan;
  for (const size_t i : placed) plan.push_back({i, shares[i]});
  return plan;
}

}  // namespace aerie
