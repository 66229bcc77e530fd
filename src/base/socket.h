// Non-blocking sockets that neither exec() nor fork() leaves open in a child. Otherwise peers of a killed process would
// not see its connections close while a child lives.
#pragma once

#include <optional>
#include <utility>

#include "src/base/owned.h"
#include "src/base/status.h"

namespace tutti {

void release_socket(int descriptor);

// Releases nothing in a forked child, which has closed all descriptors at the fork.
using Socket = Owned<int, release_socket, -1>;

Result<Socket> open_socket(int family, int type);
Result<std::pair<Socket, Socket>> open_socket_pair(int type);  // AF_UNIX.
// Takes ownership of a descriptor received over another socket. -1: returns an empty Socket.
Socket adopt_socket(int descriptor);
// Returns the next connection, or nullopt if there is none or the peer has already closed it.
Result<std::optional<Socket>> accept_socket(const Socket& listener);
// Returns true for errors of these functions that end when descriptors or memory become free.
bool is_shortage(const Status& status);

}  // namespace tutti
