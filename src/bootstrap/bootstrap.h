// How ranks that share nothing but a unique id find and trust each other: the rendezvous, a tree over all ranks for
// small exchanges, and a socket to each other rank: a unix socket on the same host, else a wire. What is said over
// these is left to their owner.
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

// Of a communicator, by whichever door its ranks come: some memory is set aside for each before anybody joins.
inline constexpr Rank kMaxRanks = 65'536;

inline constexpr std::size_t kMaxBroadcastBytes = 4U << 20;

enum class Reach : std::uint8_t {
  network,  // Listens on the interface of the default route, or that of TUTTI_SOCKET_IFNAME.
  host,     // Listens on loopback.
};

struct RendezvousOptions {
  Reach reach = Reach::network;
  std::string socket_ifname;              // "eth", "=eth0", "^docker": prefixes, exact names, all but these.
  std::string secret_file;                // A second secret, mixed in. The ranks name the same file.
  std::int64_t report_after_ms = 10'000;  // Then missing ranks are logged.
};

// Makes an id and meets its ranks in a thread of this process, which ends when all have joined, when their deadline
// has passed, or with the process. A forked child has no part in it.
Result<UniqueId> make_unique_id(const RendezvousOptions& options);

struct JoinOptions {
  std::int64_t timeout_ms = 120'000;  // All ranks fail when the first that came has waited this long.
  std::string secret_file;
  std::string socket_ifname;  // As the rendezvous', for the connections to other hosts.
  bool apart = false;         // Every rank counts as a host of its own; on all ranks alike.
  // Asked where there are other hosts, before anything connects to them; all ranks hear the answers. None: no offer.
  std::function<RemoteOffer()> remote_offer;
  Location location;                     // Of this rank; all ranks hear it.
  std::uint32_t protection = 0;          // A number for how wires will be used; on all ranks alike.
  const std::uint32_t* abort = nullptr;  // Not 0: give up.
};

// To a rank of another host.
struct PeerSocket {
  Socket socket;        // A connected stream, without delay for small messages.
  Secret session{};     // Both ends know it, and nobody else: for keys of what they say next.
  bool called = false;  // This end called the other: one of two for whom they must differ.
  std::string route;    // For messages: "192.0.2.1:40001 (eth0) -> 192.0.2.2:4711 on host-b".
};

class Bootstrap {
 public:
  // Blocks until all ranks have joined and reached each other; all succeed or all fail. What made it fail is told to
  // all that came: ranks missing, claimed twice, dead, that disagree on their number, or out of each other's reach.
  static Result<std::unique_ptr<Bootstrap>> join(const UniqueId& id, Rank rank, Rank ranks, const JoinOptions& options);
  virtual ~Bootstrap() = default;

  virtual Rank rank() const = 0;
  virtual Rank ranks() const = 0;
  virtual const PeerRecord& peer(Rank peer) const = 0;
  // [r]: what rank r offered between hosts; empty where all are on one.
  virtual const std::vector<RemoteOffer>& remote_offers() const = 0;
  bool on_same_host(Rank other) const { return peer(other).host == peer(rank()).host; }

  // Record r (of bytes_per_rank) is filled in by rank r; all ranks call it, one thread each. After a failure, which
  // all ranks hear of, only destruction may follow.
  virtual Status all_gather(std::span<std::byte> records, std::size_t bytes_per_rank, const Watch& watch) = 0;
  // What `root` has in `bytes` comes to all ranks, all of which have room for as much, kMaxBroadcastBytes at most.
  // Fails alike.
  virtual Status broadcast(Rank root, std::span<std::byte> bytes, const Watch& watch) = 0;
  Status barrier(const Watch& watch) { return all_gather({}, 0, watch); }
  // A barrier of ranks that did something each: fails on all with the reason of one, if it failed on any. A rank that
  // heard of nothing but a peer's end is told why that peer ended.
  virtual Status agree(Status own, const Watch& watch) = 0;

  // [r]: a connected SOCK_SEQPACKET socket to rank r, authenticated; none to oneself and to ranks of other hosts.
  virtual std::vector<Socket> take_sockets() = 0;
  // [r]: the wire to rank r, authenticated; without a socket to oneself and to ranks of the same host. A host that
  // vanishes while all is quiet is missed after some seconds. Nothing limits how long what was written may stay unread:
  // TCP cannot tell a peer that is busy from one that is cut off, so who uses the wire must.
  virtual std::vector<PeerSocket> take_peer_sockets() = 0;
};

}  // namespace tutti
