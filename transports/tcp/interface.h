// Network interface of a connection.
#pragma once

#include <string>

#include "src/base/socket.h"

namespace tutti {

// Returns the name of this host's interface that a connected socket uses; empty if unknown.
std::string interface_name(const Socket& socket);

}  // namespace tutti
