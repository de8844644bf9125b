// A TCP connection to a server under test that need not speak its language.
#pragma once

#include <string>
#include <string_view>

namespace aerie {

class RawSocket {
 public:
  // `address` is 127.0.0.1:PORT. Fails the test when nothing listens there.
  explicit RawSocket(const std::string& address);
  ~RawSocket();
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  // As far as the other side takes them: it may have hung up already.
  void Send(std::string_view bytes);
  // No more will be sent; reading goes on.
  void HalfClose();
  // Reads until the server hangs up, and gives what came.
  std::string ReadToEnd();
  // Reads until `count` bytes have come or the server hangs up.
  std::string Read(size_t count);

 private:
  int socket_ = -1;
};

}  // namespace aerie
