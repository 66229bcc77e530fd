// Record of a rank for ranks of other hosts: the address at which it accepts them, and its transport besides TCP.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/socket.h"
#include "src/base/status.h"
#include "src/bootstrap/peer_record.h"
#include "src/bootstrap/remote_offer.h"
#include "src/bootstrap/unique_id.h"

namespace tutti {

// Fixed-width plain data, sent over the network.
struct ListenerRecord {
  Address address;
  char interface_name[16] = {};
  char carrier[16] = {};
  char why_none[kMaxWhyBytes + 1] = {};
};
static_assert(sizeof(ListenerRecord) == 248);

void set_offer(ListenerRecord& record, const RemoteOffer& offer);
RemoteOffer offer_of(const ListenerRecord& record);

std::string interface_of(const ListenerRecord& record);  // "eth0"

ListenerRecord record_of(const Address& own);
// Checks that ranks of other hosts can connect to the record's address. Loopback is valid only if one host emulates
// several.
enum class LoopbackPolicy { reject, allow };
Status check(const ListenerRecord& record, LoopbackPolicy loopback);

// Describes a connection for messages: "192.0.2.1:40001 (eth0) -> 192.0.2.2:4711 on host-b".
std::string route_of(const Socket& socket, const ListenerRecord& own, const PeerRecord& peer);

}  // namespace tutti
