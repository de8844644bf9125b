#include "tests/server/transport/raw_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>

#include "gtest/gtest.h"

namespace aerie {

RawSocket::RawSocket(const std::string& address) {
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in peer = {};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  peer.sin_port = htons(static_cast<uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1)));
  EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&peer), sizeof(peer)), 0) << address;
}

RawSocket::~RawSocket() { close(socket_); }

void RawSocket::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void RawSocket::HalfClose() { shutdown(socket_, SHUT_WR); }

std::string RawSocket::ReadToEnd() { return Read(std::numeric_limits<size_t>::max()); }

std::string RawSocket::Read(size_t count) {
  std::string out;
  std::array<char, 4096> buffer;
  while (out.size() < count) {
    const ssize_t got =
        recv(socket_, buffer.data(), std::min(buffer.size(), count - out.size()), 0);
    if (got <= 0) break;
    out.append(buffer.data(), static_cast<size_t>(got));
  }
  return out;
}

}  // namespace aerie
