#include "src/bootstrap/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "src/base/split_at.h"

namespace tutti {
namespace {

constexpr int kBacklog = 4096;

union AddressStorage {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
  sockaddr_un unix_path;
};

Address address_from(const sockaddr* from) {
  Address address;
  if (from->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, from, sizeof v4);
    address.family = 4;
    address.port = ntohs(v4.sin_port);
    std::memcpy(address.bytes.data(), &v4.sin_addr, sizeof v4.sin_addr);
  } else if (from->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, from, sizeof v6);
    address.family = 6;
    address.port = ntohs(v6.sin6_port);
    address.scope = v6.sin6_scope_id;
    std::memcpy(address.bytes.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  }
  return address;
}

socklen_t fill(AddressStorage& to, const Address& from) {
  std::memset(&to, 0, sizeof to);
  if (from.family == 4) {
    to.v4.sin_family = AF_INET;
    to.v4.sin_port = htons(from.port);
    std::memcpy(&to.v4.sin_addr, from.bytes.data(), sizeof to.v4.sin_addr);
    return sizeof to.v4;
  }
  to.v6.sin6_family = AF_INET6;
  to.v6.sin6_port = htons(from.port);
  to.v6.sin6_scope_id = from.scope;
  std::memcpy(&to.v6.sin6_addr, from.bytes.data(), sizeof to.v6.sin6_addr);
  return sizeof to.v6;
}

socklen_t fill(AddressStorage& to, const SocketAddress& from) {
  if (from.unix_name.empty()) return fill(to, from.address);
  std::memset(&to, 0, sizeof to);
  to.unix_path.sun_family = AF_UNIX;
  TUTTI_ASSERT(from.unix_name.size() < sizeof to.unix_path.sun_path);
  std::memcpy(to.unix_path.sun_path + 1, from.unix_name.data(),
              from.unix_name.size());  // The 0 before makes it abstract.
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + from.unix_name.size());
}

int family_of(const SocketAddress& endpoint) {
  if (!endpoint.unix_name.empty()) return AF_UNIX;
  return endpoint.address.family == 4 ? AF_INET : AF_INET6;
}

// Advice for an endpoint at which listen() has failed; empty: none is known.
std::string remedy_for(int error, const SocketAddress& endpoint) {
  if (error == EADDRINUSE && !endpoint.unix_name.empty()) {
    return ": another process has this name: set TUTTI_ROOT to host:port, a different one for each job";
  }
  if (endpoint.address.port == 0) return "";
  if (error == EADDRINUSE) return ": another program has this port: choose another port";
  if (error == EADDRNOTAVAIL) return ": it must be an address of rank 0's host, and this host has no such one";
  if (error == EACCES) return ": choose a port that this user may take, from 1024 on";
  return "";
}

// Returns the source address of a route to `target`. Sends nothing.
Address route_address(const char* target) {
  const Result<Address> everywhere = resolve(target, 9);
  if (!everywhere.ok()) return {};
  AddressStorage storage;
  const socklen_t length = fill(storage, everywhere.value());
  const Result<Socket> probe = open_socket(storage.any.sa_family, SOCK_DGRAM);
  if (!probe.ok() || ::connect(probe.value().get(), &storage.any, length) != 0) return {};
  Result<Address> own = local_address(probe.value());
  if (!own.ok()) return {};
  own.value().port = 0;
  return own.value();
}

// Matches an entry of a list: "=eth0" is a whole name, "eth" a prefix.
bool matches(std::string_view entry, std::string_view name) {
  return entry.starts_with('=') ? name == entry.substr(1) : name.starts_with(entry);
}

// Splits a list of admitted interfaces. A leading "=" applies to all entries.
std::vector<std::string> entries_of(std::string_view list) {
  const bool exact = list.starts_with('=');
  if (exact) list.remove_prefix(1);
  std::vector<std::string> entries;
  for (const std::string_view entry : split_at(list, ','))
    if (!entry.empty()) entries.push_back((exact && !entry.starts_with('=') ? "=" : "") + std::string(entry));
  return entries;
}

bool admitted(std::string_view list, std::string_view name) {
  const bool excludes = list.starts_with('^');
  const std::vector<std::string> entries = entries_of(excludes ? list.substr(1) : list);
  const bool found =
      std::any_of(entries.begin(), entries.end(), [&](const std::string& entry) { return matches(entry, name); });
  return found != excludes;
}

std::string names_in(const ifaddrs* list) {
  std::vector<std::string_view> names;
  for (; list != nullptr; list = list->ifa_next) {
    const bool is_new = std::find(names.begin(), names.end(), list->ifa_name) == names.end();
    if (is_new && list->ifa_addr != nullptr && (list->ifa_flags & IFF_UP) != 0) names.emplace_back(list->ifa_name);
  }
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text.empty() ? "none" : text;
}

using Interfaces = std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)>;

Interfaces list_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) list = nullptr;
  return {list, ::freeifaddrs};
}

// Rank of an address; lower is better. Link-local addresses come last: they reach one link only, and each host numbers
// its links differently.
int preference(const Address& address, std::uint16_t family) {
  if (is_link_local(address)) return 2;
  return address.family == family ? 0 : 1;
}

Result<Address> interface_address(const std::string& ifname, std::uint16_t family) {
  const Interfaces list = list_interfaces();
  if (list == nullptr) return system_error("list the network interfaces");
  const bool excludes = ifname.starts_with('^');
  Address best;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 || !admitted(ifname, entry->ifa_name)) continue;
    const Address address = address_from(entry->ifa_addr);
    if (address.family == 0 || (excludes && is_loopback(address))) continue;
    if (best.family == 0 || preference(address, family) < preference(best, family)) best = address;
  }
  if (best.family != 0) return best;
  return invalid_argument(
      "no usable network interface is called " + ifname +
      " (TUTTI_SOCKET_IFNAME or NCCL_SOCKET_IFNAME); those with an address: " + names_in(list.get()));
}

}  // namespace

std::string describe(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "no address";
  if (address.family == 4) ::inet_ntop(AF_INET, address.bytes.data(), text, sizeof text);
  if (address.family == 6) ::inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text);
  const std::string port = std::to_string(address.port);
  return address.family == 6 ? "[" + std::string(text) + "]:" + port : text + (":" + port);
}

std::string describe(const SocketAddress& endpoint) {
  return endpoint.unix_name.empty() ? describe(endpoint.address) : "unix socket @" + endpoint.unix_name;
}

Address loopback_address() {
  Address address;
  address.family = 4;
  address.bytes = {127, 0, 0, 1};
  return address;
}

bool is_loopback(const Address& address) {
  if (address.family == 4) return address.bytes[0] == 127;
  return std::memcmp(address.bytes.data(), &in6addr_loopback, address.bytes.size()) == 0;
}

bool is_link_local(const Address& address) {
  return address.family == 6 && address.bytes[0] == 0xfe && (address.bytes[1] & 0xc0) == 0x80;
}

Address seen_from(const std::string& interface_name, Address address) {
  const unsigned number = is_link_local(address) ? ::if_nametoindex(interface_name.c_str()) : 0;
  if (number != 0) address.scope = number;
  return address;
}

namespace {

// Address of the first interface that is not loopback. Family 0 if there is none.
Address any_address() {
  const Interfaces list = list_interfaces();
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) continue;
    } else if (entry->ifa_addr->sa_family != AF_INET) {
      continue;
    }
    return address_from(entry->ifa_addr);
  }
  return {};
}

}  // namespace

std::string interface_of(Address address) {
  const Interfaces list = list_interfaces();
  address.port = 0;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr != nullptr && address_from(entry->ifa_addr) == address) return entry->ifa_name;
  }
  return "";
}

bool admits(const std::string& ifname, const std::string& interface_name) {
  return ifname.empty() || (!interface_name.empty() && admitted(ifname, interface_name));
}

namespace {

// Rejects link-local addresses, which interfaces have without being configured.
bool carries(const ifaddrs& entry) {
  const bool runs = (entry.ifa_flags & IFF_UP) != 0 && (entry.ifa_flags & IFF_RUNNING) != 0;
  if (entry.ifa_addr == nullptr || !runs) return false;
  const Address address = address_from(entry.ifa_addr);
  return address.family != 0 && !is_link_local(address);
}

bool lists_several(const std::string& ifname) {
  return !ifname.starts_with('^') && ifname.find(',') != std::string::npos;
}

}  // namespace

std::vector<Address> interface_addresses(const std::string& ifname, std::uint16_t family) {
  if (!lists_several(ifname)) return {};
  const Interfaces list = list_interfaces();
  std::vector<std::string> names;
  std::vector<Address> best;
  for (const std::string& wanted : entries_of(ifname)) {
    for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
      if (!matches(wanted, entry->ifa_name) || !carries(*entry)) continue;
      const Address address = address_from(entry->ifa_addr);
      const auto known = std::find(names.begin(), names.end(), entry->ifa_name);
      if (known == names.end()) {
        names.emplace_back(entry->ifa_name);
        best.push_back(address);
        continue;
      }
      Address& chosen = best[static_cast<std::size_t>(known - names.begin())];
      if (preference(address, family) < preference(chosen, family)) chosen = address;
    }
  }
  if (!std::all_of(best.begin(), best.end(), is_loopback)) std::erase_if(best, is_loopback);
  return best;
}

std::vector<std::string> unmatched_entries(const std::string& ifname) {
  if (!lists_several(ifname)) return {};
  const Interfaces list = list_interfaces();
  std::vector<std::string> idle;
  for (const std::string& wanted : entries_of(ifname)) {
    bool exists = false, used = false;
    for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
      const bool found = matches(wanted, entry->ifa_name);
      exists = exists || found;
      used = used || (found && carries(*entry));
    }
    if (used) continue;
    const std::string name = wanted.substr(wanted.starts_with('=') ? 1 : 0);
    idle.push_back(name + (exists ? ", which is down or has no address" : ", which does not exist") + ": there are " +
                   names_in(list.get()));
  }
  return idle;
}

Result<Address> own_address(const std::string& ifname, std::uint16_t family) {
  if (!ifname.empty()) return interface_address(ifname, family);
  for (const char* everywhere : {"8.8.8.8", "2001:4860:4860::8888"}) {
    const Address address = route_address(everywhere);
    if (address.family != 0) return address;
  }
  const Address only = any_address();  // An isolated network, without a default route.
  return only.family != 0 ? only : loopback_address();
}

Result<Address> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0) {
    return Status(Code::system, "look up " + host + ": " + ::gai_strerror(error));
  }
  Address address = address_from(list->ai_addr);
  ::freeaddrinfo(list);
  address.port = port;
  return address;
}

Result<Socket> listen_at(const SocketAddress& endpoint) {
  AddressStorage storage;
  const socklen_t length = fill(storage, endpoint);
  Socket socket = TUTTI_TRY(open_socket_for(endpoint));
  const int on = 1;  // Allows reuse of a port with packets of an earlier listener. Two listeners still cannot share it.
  if (endpoint.address.port != 0) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), &storage.any, length) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    const std::string remedy = remedy_for(errno, endpoint);
    return Status(Code::system, system_error("listen at " + describe(endpoint)).message() + remedy);
  }
  return socket;
}

Result<Socket> open_socket_for(const SocketAddress& endpoint) {
  return open_socket(family_of(endpoint), endpoint.type);
}

Status connect(const Socket& socket, const SocketAddress& endpoint) {
  AddressStorage storage;
  const socklen_t length = fill(storage, endpoint);
  if (endpoint.unix_name.empty()) watch_connection(socket, kUnreceivedMs);
  if (::connect(socket.get(), &storage.any, length) == 0 || errno == EINPROGRESS) return {};
  const bool no_loopback = errno == ENETUNREACH && endpoint.unix_name.empty() && is_loopback(endpoint.address);
  Status status = system_error("connect to " + describe(endpoint));
  if (!no_loopback) return status;
  return {Code::system, status.message() + ": the loopback interface is down (ip link set lo up)"};
}

Result<Socket> connect_to(const SocketAddress& endpoint) {
  Socket socket = TUTTI_TRY(open_socket_for(endpoint));
  TUTTI_CHECK_OK(connect(socket, endpoint));
  return socket;
}

Result<Address> local_address(const Socket& socket) {
  AddressStorage storage;
  socklen_t length = sizeof storage;
  if (::getsockname(socket.get(), &storage.any, &length) != 0) return system_error("get the address of a socket");
  return address_from(&storage.any);
}

Result<Address> peer_address(const Socket& socket) {
  AddressStorage storage;
  socklen_t length = sizeof storage;
  if (::getpeername(socket.get(), &storage.any, &length) != 0) return system_error("get the peer address of a socket");
  return address_from(&storage.any);
}

void watch_connection(const Socket& socket, int unreceived_ms) {
  const auto set = [&](int level, int option, int value) {
    ::setsockopt(socket.get(), level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, unreceived_ms);
}

}  // namespace tutti
