// A rank's way to another one: a socket, where both are on one host, or its part in a connection between hosts.
#pragma once

#include <cstdint>
#include <memory>

#include "src/base/socket.h"
#include "transports/tcp/connection.h"

namespace tutti {

struct Contact {
  Socket socket;  // SOCK_SEQPACKET.
  std::shared_ptr<TcpConnection> connection;
  std::uint32_t context = 0;  // Of the connection, which other communicators use as well.

  bool far() const { return connection != nullptr; }
};

// The other end of a contact that is being made, on its way to the peer: a descriptor, or a number.
struct Passage {
  Socket socket;
  std::uint32_t context = 0;
};

}  // namespace tutti
