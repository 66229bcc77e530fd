#include "src/bootstrap/listener_record.h"

#include <string.h>

#include <algorithm>

#include "src/bootstrap/address.h"

namespace tutti {
namespace {

constexpr const char* kUnknownInterface = "unknown interface";

template <std::size_t bytes>
std::string text_of(const char (&field)[bytes]) {
  return {field, ::strnlen(field, bytes)};
}

// Copies the text, truncated if necessary. Always zero-terminated.
template <std::size_t bytes>
void fill(char (&field)[bytes], const std::string& text) {
  std::copy_n(text.begin(), std::min(text.size(), bytes - 1), field);
}

std::string known(const std::string& interface_name) {
  return interface_name.empty() ? kUnknownInterface : interface_name;
}

}  // namespace

std::string interface_of(const ListenerRecord& record) { return known(text_of(record.interface_name)); }

void set_offer(ListenerRecord& record, const RemoteOffer& offer) {
  fill(record.carrier, offer.carrier);
  const bool fits = offer.why_none.size() <= kMaxWhyBytes;
  fill(record.why_none, fits ? offer.why_none : offer.why_none.substr(0, kMaxWhyBytes - 3) + "...");
}

RemoteOffer offer_of(const ListenerRecord& record) { return {text_of(record.carrier), text_of(record.why_none)}; }

ListenerRecord record_of(const Address& own) {
  ListenerRecord record;
  record.address = own;
  fill(record.interface_name, interface_of(own));
  return record;
}

Status check(const ListenerRecord& record, LoopbackPolicy loopback) {
  const Address& address = record.address;
  const bool callable = (address.family == 4 || address.family == 6) && address.port != 0;
  if (!callable) return remote_error("it reported no address at which it listens");
  if (loopback == LoopbackPolicy::allow || !is_loopback(address)) return {};
  return invalid_usage(
      "its address is on loopback, which no other host reaches: name another interface by "
      "TUTTI_SOCKET_IFNAME there");
}

// Best effort. A peer that has just died leaves an unconnected socket, which its users report.
std::string route_of(const Socket& socket, const ListenerRecord& own, const PeerRecord& peer) {
  const Result<Address> local = local_address(socket);
  const Result<Address> remote = peer_address(socket);
  const Address from = local.ok() ? local.value() : Address{};
  const Address to = remote.ok() ? remote.value() : Address{};
  const bool usual = from.bytes == own.address.bytes && from.family == own.address.family;
  const std::string interface_name = usual ? interface_of(own) : known(interface_of(from));
  return describe(from) + " (" + interface_name + ") -> " + describe(to) + " on " + hostname_of(peer);
}

}  // namespace tutti
