// Puts the replies of one stream into order: those of one session leave in the order of its
// requests.
//
// The engine serves the calls of a session in order, but a call that is refused earlier (malformed,
// queue full) has its reply before its elders have theirs. Replies without a session, such as those
// of opens, wait for nobody. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/check.h"

namespace aerie {

template <typename Reply>
class ReplyOrder {
 public:
  using Ticket = uint64_t;

  // A request of `session` has come; empty: of none.
  Ticket Expect(const std::string& session) {
    const Ticket ticket = next_++;
    session_of_[ticket] = session;
    if (!session.empty()) waiting_[session].push_back({ticket, std::nullopt});
    return ticket;
  }

  // The reply to a request, once. Gives what may leave now, in order.
  std::vector<Reply> Complete(Ticket ticket, Reply reply) {
    const auto found = session_of_.find(ticket);
    AERIE_CHECK(found != session_of_.end()) << "ticket " << ticket;
    const std::string session = std::move(found->second);
    session_of_.erase(found);
    std::vector<Reply> out;
    if (session.empty()) {
      out.push_back(std::move(reply));
      return out;
    }
    const auto queue = waiting_.find(session);
    for (Entry& entry : queue->second) {
      if (entry.ticket == ticket) entry.reply = std::move(reply);
    }
    while (!queue->second.empty() && queue->second.front().reply) {
      out.push_back(*std::move(queue->second.front().reply));
      queue->second.pop_front();
    }
    if (queue->second.empty()) waiting_.erase(queue);
    return out;
  }

 private:
  struct Entry {
    Ticket ticket;
    std::optional<Reply> reply;
  };

  Ticket next_ = 1;
  std::map<Ticket, std::string> session_of_;
  std::map<std::string, std::deque<Entry>> waiting_;
};

}  // namespace aerie
