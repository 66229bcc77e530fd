// Where sockets listen and connect: IP addresses, and names of abstract unix sockets, which leave nothing behind.
#pragma once

#include <string>
#include <vector>

#include "src/base/socket.h"
#include "src/base/status.h"
#include "src/bootstrap/unique_id.h"

namespace tutti {

struct Endpoint {
  Address address;        // If unix_name is empty.
  std::string unix_name;  // Abstract, in the network namespace of the process.
  int type = 0;           // SOCK_STREAM or SOCK_SEQPACKET.
};

std::string describe(const Address& address);  // "192.0.2.2:4711", "[fd00::2]:4711"
std::string describe(const Endpoint& endpoint);
bool is_loopback(const Address& address);
bool is_link_local(const Address& address);  // Of IPv6: means something together with an interface only.
// A link-local address that another host told, with this host's number for the link; others are as they are.
Address seen_from(const std::string& interface_name, Address address);

// The address of this host that others reach: of the first interface that `ifname` admits ("eth", "=eth0", "^docker",
// and lists of these), or of the default route where it is empty, or loopback where there is none. Of an interface with
// several, that of the family (4 or 6).
Result<Address> own_address(const std::string& ifname, std::uint16_t family = 4);
bool admits(const std::string& ifname, const std::string& interface_name);
// Where `ifname` lists what is admitted with commas: the address of each such interface that runs, as above, in the
// order of the list. Not addresses that hold on one link only, nor loopback beside others. Ranks of one host share them
// out.
std::vector<Address> rails(const std::string& ifname, std::uint16_t family);
// Of a list that admits several, what finds no interface that can be used: "eth9", each with why and what there is. A
// list that leaves out may name what is not there.
std::vector<std::string> idle_entries(const std::string& ifname);
// Which has the address, whatever its port; empty: none that we know.
std::string interface_of(Address address);
Address loopback_address();
// Of a name or a number; may ask a name server.
Result<Address> resolve(const std::string& host, std::uint16_t port);

// Port 0: any. Never on all interfaces.
Result<Socket> listen_at(const Endpoint& endpoint);
// Begins to connect, does not wait: the first write tells whether it worked.
Result<Socket> connect_to(const Endpoint& endpoint);
// Its two halves. What goes wrong with the first is this process's trouble, with the second the other end's.
Result<Socket> open_socket_for(const Endpoint& endpoint);
Status connect(const Socket& socket, const Endpoint& endpoint);
Result<Address> local_address(const Socket& socket);
Result<Address> peer_address(const Socket& socket);
// No delay for small messages, and a host that vanishes without a word is missed after 3 to 6 seconds. What was sent
// and nobody takes ends the connection after `unreceived_ms`, also where the peer lives and does not read; 0: it waits.
inline constexpr int kUnreceivedMs = 3000;  // As connect() sets it.
void watch_connection(const Socket& socket, int unreceived_ms);

}  // namespace tutti
