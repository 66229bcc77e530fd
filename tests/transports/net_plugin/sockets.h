// Connections of the stand-in network plugin, and the progress of their requests.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "transports/net_plugin/abi.h"

namespace tutti::nccl_net {

inline constexpr Code kSystemError = 2, kInvalidArgument = 4, kRemoteError = 6;

struct Handle {
  sockaddr_in address;
  int stage;
  int socket;
};
static_assert(sizeof(Handle) <= kHandleBytes);

struct Listening {
  int listener;
  int accepted = -1;
};

struct Connection;
struct Request {
  Connection* connection;
  char* data;
  std::uint32_t bytes = 0;  // Sender: size; receiver: size of the buffer, then of the message.
  std::uint32_t head = 0;   // Size on the wire.
  std::size_t moved = 0;    // Bytes of head and data.
  bool done = false;
};
struct Connection {
  int socket;
  bool sends;
  int credits = 0;  // Sender: receives that the other end has posted.
  std::deque<Request*> requests;
  std::deque<std::unique_ptr<Request>> memory;
};

inline void unblock(int socket) { ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK); }
inline void send_at_once(int socket) {
  const int one = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

// Moves bytes of the oldest requests, in order.
inline Code progress(Connection& connection) {
  while (!connection.requests.empty()) {
    Request& request = *connection.requests.front();
    constexpr std::size_t kHead = sizeof request.head;
    const bool in_head = request.moved < kHead;
    char* at = in_head ? reinterpret_cast<char*>(&request.head) + request.moved : request.data + request.moved - kHead;
    const std::size_t left = in_head ? kHead - request.moved : kHead + request.head - request.moved;
    if (left > 0) {
      const ssize_t moved = connection.sends ? ::send(connection.socket, at, left, MSG_NOSIGNAL | MSG_DONTWAIT)
                                             : ::recv(connection.socket, at, left, MSG_DONTWAIT);
      if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return kSuccess;
      if (moved < 0) return kSystemError;
      if (moved == 0) return kRemoteError;
      request.moved += static_cast<std::size_t>(moved);
    }
    if (request.moved >= kHead && request.head > request.bytes) return kInvalidArgument;
    if (request.moved < kHead || request.moved < kHead + request.head) continue;
    request.done = true;
    connection.requests.pop_front();
  }
  return kSuccess;
}

inline Request* add(Connection& connection, void* data, std::size_t bytes) {
  std::erase_if(connection.memory, [](const auto& request) { return request->connection == nullptr; });
  if (connection.memory.size() >= 32) return nullptr;
  connection.memory.push_back(std::make_unique<Request>());
  Request& request = *connection.memory.back();
  request.connection = &connection;
  request.data = static_cast<char*>(data);
  request.bytes = static_cast<std::uint32_t>(bytes);
  if (connection.sends) request.head = request.bytes;
  connection.requests.push_back(&request);
  return &request;
}

}  // namespace tutti::nccl_net
