#include "src/base/socket.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <mutex>
#include <vector>

namespace tutti {
namespace {

// All open sockets. The lock is held while a socket is created, so that no fork() happens before it is registered.
struct Registry {
  std::mutex mutex;
  std::vector<bool> open;  // Index: descriptor.
};

// Never destroyed: communicators that the process never destroyed may end later.
Registry& registry = *new Registry;

void close_all() {
  for (std::size_t descriptor = 0; descriptor < registry.open.size(); ++descriptor) {
    if (registry.open[descriptor]) ::close(static_cast<int>(descriptor));
    registry.open[descriptor] = false;
  }
}

// Registered when the library is loaded. A fork() during the first use would otherwise leave a locked guard in the
// child.
[[maybe_unused]] const int watched = ::pthread_atfork([] { registry.mutex.lock(); }, [] { registry.mutex.unlock(); },
                                                      [] {
                                                        close_all();
                                                        registry.mutex.unlock();
                                                      });

// Makes room to register the descriptors. Closes all of them if there is no memory.
void make_room(std::initializer_list<int> descriptors) {
  const auto size = static_cast<std::size_t>(std::max(descriptors)) + 1;
  try {
    if (registry.open.size() < size) registry.open.resize(size);
  } catch (...) {
    for (const int descriptor : descriptors) ::close(descriptor);
    throw;
  }
}

Socket enter(int descriptor) {
  make_room({descriptor});
  registry.open[static_cast<std::size_t>(descriptor)] = true;
  return Socket(descriptor);
}

bool means_shortage(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

}  // namespace

void release_socket(int descriptor) {
  const std::lock_guard lock(registry.mutex);
  std::vector<bool>& open = registry.open;
  const auto index = static_cast<std::size_t>(descriptor);
  if (index >= open.size() || !open[index]) return;
  open[index] = false;
  ::close(descriptor);
}

Result<Socket> open_socket(int family, int type) {
  const std::lock_guard lock(registry.mutex);
  const int descriptor = ::socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return system_error("open a socket");
  return enter(descriptor);
}

Result<std::pair<Socket, Socket>> open_socket_pair(int type) {
  const std::lock_guard lock(registry.mutex);
  int pair[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
    return system_error("open a pair of sockets");
  }
  make_room({pair[0], pair[1]});
  return std::pair(enter(pair[0]), enter(pair[1]));
}

Socket adopt_socket(int descriptor) {
  if (descriptor < 0) return Socket();
  const std::lock_guard lock(registry.mutex);
  return enter(descriptor);
}

Result<std::optional<Socket>> accept_socket(const Socket& listener) {
  const std::lock_guard lock(registry.mutex);
  const int descriptor = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor >= 0) return std::optional(enter(descriptor));
  if (means_shortage(errno)) return system_error("accept a connection");
  return std::optional<Socket>();
}

bool is_shortage(const Status& status) { return means_shortage(status.os_error()); }

}  // namespace tutti
