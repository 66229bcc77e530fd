#include "transports/tcp/interface.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

namespace tutti {
namespace {

bool same_address(const sockaddr* one, const sockaddr* other) {
  if (one == nullptr || one->sa_family != other->sa_family) return false;
  if (one->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(one)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(other)->sin_addr.s_addr;
  }
  return one->sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6*>(one)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(other)->sin6_addr, sizeof(in6_addr)) == 0;
}

}  // namespace

std::string interface_name(const Socket& socket) {
  sockaddr_storage local = {};
  socklen_t bytes = sizeof local;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &bytes) != 0) return "";
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, ::freeifaddrs);
  for (const ifaddrs* each = all.get(); each != nullptr; each = each->ifa_next) {
    if (same_address(each->ifa_addr, reinterpret_cast<const sockaddr*>(&local))) return each->ifa_name;
  }
  return "";
}

}  // namespace tutti
