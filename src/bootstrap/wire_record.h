// Where a rank awaits the calls of ranks on other hosts.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/socket.h"
#include "src/base/status.h"
#include "src/bootstrap/peer_record.h"
#include "src/bootstrap/unique_id.h"

namespace tutti {

// Fixed-width plain data: it travels.
struct WireRecord {
  Address address;
  char interface_name[16] = {};
};
static_assert(sizeof(WireRecord) == 40);

std::string interface_of(const WireRecord& record);  // "eth0"

WireRecord record_of(const Address& own);
// Whether a rank of another host can be called there. Loopback leads to oneself, unless the hosts are one that plays
// several.
enum class Hosts { differ, are_played };
Status check(const WireRecord& record, Hosts hosts);

// For messages: "192.0.2.1:40001 (eth0) -> 192.0.2.2:4711 on host-b".
std::string route_of(const Socket& socket, const WireRecord& own, const PeerRecord& peer);

}  // namespace tutti
