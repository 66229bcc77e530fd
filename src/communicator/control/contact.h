// A rank's way to another one: a socket, where both are on one host, or its part in a connection between hosts. It ends
// with its owner.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "src/base/socket.h"
#include "transports/tcp/connection.h"

namespace tutti {

class Contact {
 public:
  Contact() = default;                                             // None.
  explicit Contact(Socket socket) : socket_(std::move(socket)) {}  // SOCK_SEQPACKET.
  // `context`: of the connection, which other communicators use as well.
  explicit Contact(std::shared_ptr<TcpConnection> connection, std::uint32_t context = 0)
      : connection_(std::move(connection)), context_(context) {}
  Contact(Contact&& other) noexcept;
  Contact& operator=(Contact&& other) noexcept;  // What was held ends.
  ~Contact();

  bool is_remote() const { return connection_ != nullptr; }
  explicit operator bool() const { return is_remote() || socket_; }
  const Socket& socket() const { return socket_; }
  TcpConnection& connection() const { return *connection_; }
  std::uint32_t context() const { return context_; }
  // Another part in the same connection.
  Contact beside(std::uint32_t context) const { return Contact(connection_, context); }

 private:
  Socket socket_;
  std::shared_ptr<TcpConnection> connection_;
  std::uint32_t context_ = 0;
};

// The other end of a contact that is being made, on its way to the peer: a descriptor, or a number.
struct Passage {
  Socket socket;
  std::uint32_t context = 0;
};

}  // namespace tutti
