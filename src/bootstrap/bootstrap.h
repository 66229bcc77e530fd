// Joining of ranks that share only a unique id. Provides the rendezvous, a tree over all ranks for small exchanges, and
// a connected socket to each other rank: a unix socket on the same host, else TCP. The owner defines the traffic on
// these sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/rank.h"
#include "src/base/socket.h"
#include "src/base/status.h"
#include "src/bootstrap/peer_record.h"
#include "src/bootstrap/remote_offer.h"
#include "src/bootstrap/unique_id.h"
#include "src/bootstrap/watch.h"

namespace tutti {

// Maximum ranks of a communicator. Some memory per rank is allocated before ranks join.
inline constexpr Rank kMaxRanks = 65'536;

inline constexpr std::size_t kMaxBroadcastBytes = 4U << 20;

enum class ListenScope : std::uint8_t {
  network,  // Listens on the interface of the default route, or that of TUTTI_SOCKET_IFNAME.
  host,     // Listens on loopback.
};

struct RendezvousOptions {
  ListenScope scope = ListenScope::network;
  std::string socket_ifname;              // Prefixes "eth", exact names "=eth0", or exclusions "^docker".
  std::string secret_file;                // File with a second secret. All ranks must name the same file.
  std::int64_t report_after_ms = 10'000;  // Missing ranks are logged after this time.
};

// Creates an id and runs its rendezvous in a thread of this process. The thread ends when all ranks have joined, at
// their deadline, or with the process. Forked children do not run it.
Result<UniqueId> make_unique_id(const RendezvousOptions& options);

struct JoinOptions {
  std::int64_t timeout_ms = 120'000;  // All ranks fail when the first rank has waited this long.
  std::string secret_file;
  std::string socket_ifname;       // Interfaces for connections to other hosts, as in RendezvousOptions.
  bool one_host_per_rank = false;  // Treat every rank as a host of its own (must match on all ranks).
  // Called if there are other hosts, before connections to them are made. All ranks receive the results. Null: no
  // offer.
  std::function<RemoteOffer()> remote_offer;
  Location location;                     // Location of this rank, sent to all ranks.
  std::uint32_t protection = 0;          // How peer sockets will be protected, as a number (must match on all ranks).
  const std::uint32_t* abort = nullptr;  // Joining stops soon after *abort becomes nonzero.
};

// A socket to a rank of another host.
struct PeerSocket {
  Socket socket;              // Connected stream without Nagle's algorithm.
  Secret session{};           // Secret known to both ends only; derive keys from it.
  bool opened_by_us = false;  // True on the end that opened the connection.
  std::string route;          // For messages: "192.0.2.1:40001 (eth0) -> 192.0.2.2:4711 on host-b".
};

class Bootstrap {
 public:
  // Blocks until all ranks have joined and connected to each other. All ranks succeed, or all fail with the same
  // reason: missing, duplicate, dead or unreachable ranks, or different numbers of ranks.
  static Result<std::unique_ptr<Bootstrap>> join(const UniqueId& id, Rank rank, Rank ranks, const JoinOptions& options);
  virtual ~Bootstrap() = default;

  virtual Rank rank() const = 0;
  virtual Rank ranks() const = 0;
  virtual const PeerRecord& peer(Rank peer) const = 0;
  // Offers for traffic between hosts, by rank. Empty if all ranks are on one host.
  virtual const std::vector<RemoteOffer>& remote_offers() const = 0;
  // Address at which this rank accepted ranks of other hosts. Meaningless if all ranks are on one host.
  virtual const Address& listener_address() const = 0;
  bool on_same_host(Rank other) const { return peer(other).host == peer(rank()).host; }

  // Rank r fills in record r of `records`, each of bytes_per_rank bytes. All ranks must call it, with one thread each.
  // Failures are reported to all ranks; afterwards only destruction is allowed.
  virtual Status all_gather(std::span<std::byte> records, std::size_t bytes_per_rank, const Watch& watch) = 0;
  // Copies `bytes` of `root` to all ranks. All ranks pass the same size, at most kMaxBroadcastBytes. Fails on all
  // ranks.
  virtual Status broadcast(Rank root, std::span<std::byte> bytes, const Watch& watch) = 0;
  Status barrier(const Watch& watch) { return all_gather({}, 0, watch); }
  // A barrier that fails on all ranks with one rank's reason if `own` is an error on any rank. If a rank only saw a
  // peer disconnect, it reports that peer's reason.
  virtual Status agree(Status own, const Watch& watch) = 0;

  // Connected and authenticated SOCK_SEQPACKET sockets, by rank. Empty for this rank and for ranks of other hosts.
  virtual std::vector<Socket> take_sockets() = 0;
  // Authenticated TCP sockets, by rank. Empty for this rank and for ranks of the same host. A vanished host is detected
  // after some seconds on an idle connection. Unread data has no time limit, because TCP cannot tell a busy peer from a
  // disconnected one; users need their own timeout.
  virtual std::vector<PeerSocket> take_peer_sockets() = 0;
};

}  // namespace tutti
