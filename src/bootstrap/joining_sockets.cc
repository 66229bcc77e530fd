// Connections between ranks of different hosts. Each rank listens and publishes its address; of two ranks, the higher
// connects.
#include <string.h>
#include <sys/socket.h>

#include <algorithm>

#include "src/base/log.h"
#include "src/bootstrap/address.h"
#include "src/bootstrap/joining.h"

namespace tutti {
namespace {

// A full listen queue drains much faster than this, even when all ranks connect at once. Ranks that find the queue full
// retry.
constexpr int kConnectMs = 15'000;

std::string described(Rank rank, const PeerRecord& record, const ListenerRecord& listener) {
  const std::string by = listener.interface_name[0] == '\0' ? "" : ", " + interface_of(listener);
  return "rank " + std::to_string(rank) + " (" + describe(record) + by + ")";
}

// Called once per host.
void warn_of_idle_interfaces(const std::string& ifname) {
  for (const std::string& entry : unmatched_entries(ifname))
    log(LogLevel::warn, "TUTTI_SOCKET_IFNAME or NCCL_SOCKET_IFNAME (%s) names %s", ifname.c_str(), entry.c_str());
}

}  // namespace

// All ranks agree on whether there are other hosts, so either all take part or none.
Status Joining::join_peer_sockets() {
  std::vector<Rank> others;
  for (Rank peer = 0; peer < ranks_; ++peer) {
    if (!on_same_host(peer)) others.push_back(peer);
  }
  if (others.empty()) return {};
  TUTTI_CHECK_OK(await_peer_sockets().during("rank " + std::to_string(rank_) + " (" + describe(own_.peer) +
                                             ") prepared for calls of ranks on other hosts"));
  if (options_.remote_offer) set_offer(listener_, options_.remote_offer());
  std::vector<ListenerRecord> listeners(ranks_);
  listeners[rank_] = listener_;
  TUTTI_CHECK_OK(tree_.all_gather(std::as_writable_bytes(std::span(listeners)), sizeof(ListenerRecord), watch_));
  for (const ListenerRecord& listener : listeners) remote_offers_.push_back(offer_of(listener));
  log(LogLevel::trace, "connects to %zu ranks of other hosts", others.size());
  for (const Rank peer : others) {
    if (peer < rank_)
      TUTTI_CHECK_OK(connect_to_host({Role::peer, rank_, ranks_, peer}, records_[peer], listeners[peer]));
  }
  phase_ = "the ranks of other hosts to connect over TCP";
  return serve_until([&] {
    return std::all_of(others.begin(), others.end(), [this](Rank peer) { return bool(peer_sockets_[peer].socket); });
  });
}

// With several interfaces, ranks with the same index within their hosts use the same interface, because they exchange
// most data. Otherwise uses the interface that reaches the rendezvous, if admitted.
Status Joining::await_peer_sockets() {
  Address address = own_.tree;
  const std::vector<Address> several = interface_addresses(options_.socket_ifname, id_.address.family);
  Rank before = 0;
  for (Rank peer = 0; peer < rank_; ++peer) before += on_same_host(peer) ? 1 : 0;
  if (before == 0) warn_of_idle_interfaces(options_.socket_ifname);
  if (several.size() > 1) {
    address = several[before % several.size()];
  } else if (!admits(options_.socket_ifname, interface_of(address))) {
    address = TUTTI_TRY(own_address(options_.socket_ifname, id_.address.family));
  }
  address.port = 0;
  Socket listener = TUTTI_TRY(listen_at({address, "", SOCK_STREAM}));
  address = TUTTI_TRY(local_address(listener));
  listener_ = record_of(address);
  acceptor_.listen(std::move(listener), Role::peer, credentials_);
  log(LogLevel::trace, "awaits ranks of other hosts at %s (%s)", describe(listener_.address).c_str(),
      interface_of(listener_).c_str());
  return {};
}

Status Joining::connect_to_host(const Claim& claim, const PeerRecord& peer, const ListenerRecord& listener) {
  const std::string call = described(rank_, own_.peer, listener_) + " called " +
                           described(claim.server, peer, listener) + " over TCP at " + describe(listener.address);
  TUTTI_CHECK_OK(
      check(listener, options_.one_host_per_rank ? LoopbackPolicy::allow : LoopbackPolicy::reject).during(call));
  const std::string purpose = call +
                              ": if both still run, let TCP through the firewalls between them, or name the interface "
                              "by which hosts reach each other by TUTTI_SOCKET_IFNAME";
  const SocketAddress endpoint = {seen_from(interface_of(listener_), listener.address), "", SOCK_STREAM};
  Socket socket = TUTTI_TRY(open_socket_for(endpoint));
  Status connecting = connect(socket, endpoint);  // Connection errors concern the network, not this rank.
  if (!connecting.ok()) return remote_error(connecting.message()).during(purpose);
  watch_connection(socket, kConnectMs);
  return start_handshake(std::move(socket), claim, {purpose, connect_deadline_});
}

Status Joining::accept_peer_socket(Rank other, AcceptedPeer accepted) {
  const bool due = !on_same_host(other) && accepted.opened_by_us == (other < rank_) && !peer_sockets_[other].socket;
  if (!due) return remote_error("unexpected connection from rank " + std::to_string(other));
  watch_connection(accepted.socket, 0);  // No limit: the reader may be busy for long.
  std::string route = route_of(accepted.socket, listener_, records_[other]);
  log(LogLevel::trace, "socket to rank %u: %s", other, route.c_str());
  peer_sockets_[other] = {std::move(accepted.socket), accepted.session, accepted.opened_by_us, std::move(route)};
  return {};
}

}  // namespace tutti
