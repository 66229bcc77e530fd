// Addresses at which sockets listen and connect: IP addresses, and names of abstract unix sockets, which leave no
// files.
#pragma once

#include <string>
#include <vector>

#include "src/base/socket.h"
#include "src/base/status.h"
#include "src/bootstrap/unique_id.h"

namespace tutti {

struct SocketAddress {
  Address address;        // Used if unix_name is empty.
  std::string unix_name;  // Abstract, in the network namespace of the process.
  int type = 0;           // SOCK_STREAM or SOCK_SEQPACKET.
};

std::string describe(const Address& address);  // "192.0.2.2:4711", "[fd00::2]:4711"
std::string describe(const SocketAddress& endpoint);
bool is_loopback(const Address& address);
bool is_link_local(const Address& address);  // True for IPv6 addresses that are valid only together with an interface.
// Returns a link-local address from another host with this host's scope id of the interface. Other addresses are
// unchanged.
Address seen_from(const std::string& interface_name, Address address);

// Returns this host's address for other hosts: that of the first interface that `ifname` admits ("eth", "=eth0",
// "^docker", or a list). If `ifname` is empty: the interface of the default route, or loopback without one. `family` (4
// or 6) selects among several addresses of the interface.
Result<Address> own_address(const std::string& ifname, std::uint16_t family = 4);
bool admits(const std::string& ifname, const std::string& interface_name);
// Returns the address of each running interface that a list in `ifname` admits, in the order of the list. Leaves out
// link-local addresses, and loopback if there are others. The ranks of a host share these addresses.
std::vector<Address> interface_addresses(const std::string& ifname, std::uint16_t family);
// Returns one text for each entry of a list that matches no usable interface, with the reason and the existing
// interfaces. Entries of exclusion lists may match none.
std::vector<std::string> unmatched_entries(const std::string& ifname);
// Returns the name of the interface with this address, ignoring the port. Empty if unknown.
std::string interface_of(Address address);
Address loopback_address();
// Resolves a host name or a numeric address. May query a name server.
Result<Address> resolve(const std::string& host, std::uint16_t port);

// Listens on one address, never on all interfaces. Port 0 selects a free port.
Result<Socket> listen_at(const SocketAddress& endpoint);
// Starts connecting and does not wait. The first write reports whether it succeeded.
Result<Socket> connect_to(const SocketAddress& endpoint);
// The two halves of connect_to(). An error of open_socket_for() is local; an error of connect() concerns the other end.
Result<Socket> open_socket_for(const SocketAddress& endpoint);
Status connect(const Socket& socket, const SocketAddress& endpoint);
Result<Address> local_address(const Socket& socket);
Result<Address> peer_address(const Socket& socket);
// Disables Nagle's algorithm and enables keepalive: a vanished host is detected after 3 to 6 seconds. Unacknowledged
// data ends the connection after `unreceived_ms`, even if the peer is alive but does not read. 0: no such limit.
inline constexpr int kUnreceivedMs = 3000;  // Set by connect().
void watch_connection(const Socket& socket, int unreceived_ms);

}  // namespace tutti
