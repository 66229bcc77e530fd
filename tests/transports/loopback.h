// Connected pair of TCP sockets on loopback.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <utility>

#include "src/base/socket.h"

namespace tutti::test {

inline std::pair<Socket, Socket> loopback_pair() {
  const Socket listener = open_socket(AF_INET, SOCK_STREAM).value();
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), any, bytes) != 0 || ::listen(listener.get(), 1) != 0) std::abort();
  if (::getsockname(listener.get(), any, &bytes) != 0) std::abort();
  Socket caller = open_socket(AF_INET, SOCK_STREAM).value();
  (void)::connect(caller.get(), any, bytes);  // Returns EINPROGRESS, since the socket is non-blocking.
  for (;;) {
    auto accepted = accept_socket(listener);
    if (accepted.ok() && accepted.value()) return {std::move(caller), std::move(*accepted.value())};
  }
}

}  // namespace tutti::test
