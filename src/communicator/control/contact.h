// Control connection from a rank to one peer. Within a host it is a socket. Between hosts it is a context of a
// connection that several communicators share. The destructor closes it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "src/base/socket.h"
#include "transports/tcp/connection.h"

namespace tutti {

class Contact {
 public:
  Contact() = default;                                             // Not connected.
  explicit Contact(Socket socket) : socket_(std::move(socket)) {}  // Must be SOCK_SEQPACKET.
  // `context` is the number of this communicator on the connection.
  explicit Contact(std::shared_ptr<TcpConnection> connection, std::uint32_t context = 0)
      : connection_(std::move(connection)), context_(context) {}
  Contact(Contact&& other) noexcept;
  Contact& operator=(Contact&& other) noexcept;  // Closes the previous contact.
  ~Contact();

  bool is_remote() const { return connection_ != nullptr; }
  explicit operator bool() const { return is_remote() || socket_; }
  const Socket& socket() const { return socket_; }
  TcpConnection& connection() const { return *connection_; }
  std::uint32_t context() const { return context_; }
  // Returns a contact to the same peer over the same connection, for another communicator.
  Contact for_context(std::uint32_t context) const { return Contact(connection_, context); }

  // Closes contacts. Connections that no other communicator uses are finished concurrently, within 3 s in total.
  // Closing them one by one would take 3 s for each unreachable peer.
  static void close_all(std::vector<Contact> contacts);

 private:
  Socket socket_;
  std::shared_ptr<TcpConnection> connection_;
  std::uint32_t context_ = 0;
};

// The other end of a new contact, to be sent to the peer: a socket or the number of a context.
struct Passage {
  Socket socket;
  std::uint32_t context = 0;
};

}  // namespace tutti
