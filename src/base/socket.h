// Sockets that never block, and that neither an exec'ed nor a forked child keeps open: otherwise the peers of a killed
// process would not see its connections end while a child of it lives.
#pragma once

#include <optional>
#include <utility>

#include "src/base/owned.h"
#include "src/base/status.h"

namespace tutti {

void release_socket(int descriptor);

// In a forked child it releases nothing: the descriptor was closed at the fork.
using Socket = Owned<int, release_socket, -1>;

Result<Socket> open_socket(int family, int type);
Result<std::pair<Socket, Socket>> open_socket_pair(int type);  // AF_UNIX.
// One that came over another socket; -1: none.
Socket adopt_socket(int descriptor);
// The next connection, or none: also if the peer has already given up.
Result<std::optional<Socket>> accept_socket(const Socket& listener);

}  // namespace tutti
