// Bytes along a ring of hosts, to see how fast they go: each rank sends to one of the next host while one of the host
// before sends to it. Who sends decides when a stream ends, and says so in it; so nobody awaits more than comes.
#pragma once

#include <cstdint>
#include <span>

#include "src/bootstrap/bootstrap.h"
#include "src/communicator/hosts.h"

namespace tutti {

// Whom a rank sends to, and who sends to it, on the hosts before and after; null: it has no part.
struct StreamRing {
  const PeerSocket* next = nullptr;
  const PeerSocket* previous = nullptr;
  std::uint32_t turn = 0;   // Among the ranks of its host.
  std::uint32_t ranks = 0;  // Of each host that have a part.
};

StreamRing ring_of(const Hosts& hosts, Rank self, std::span<const PeerSocket> peer_sockets);

// What a rank sends; units and the most of bytes are the same on all. No more is on the way than the window, which
// grows with what has arrived at the other end. A stream that may end early is followed by another only when all know
// of it.
struct StreamLimits {
  std::uint64_t unit_bytes = 0;  // Streams are of whole ones; the last is marked.
  std::uint64_t max_bytes = 0;   // In whole units.
  double min_us = 0;             // Who has sent for so long ends, if in the later half enough has arrived to judge by,
  double max_us = 0;             // or for so long, whatever has.
  std::uint64_t window_bytes = 0;  // At least.
  std::uint64_t gone_bytes = 0;    // In streams before.
  std::uint64_t slack_bytes = 0;   // So much of all that has gone may have passed some limit of the rate at once.
  double growth = 0;               // Of the window, by each byte that has arrived beyond the slack.
};

// What a rank saw.
struct Streamed {
  double us = 0;                 // Until all had come,
  std::uint64_t bytes = 0;       // which were these.
  double late_us = 0;            // Of these the later half, or somewhat more,
  std::uint64_t late_bytes = 0;  // and what came then.
  std::uint64_t sent_bytes = 0;
};

// Of a rank that has a part. Blocks until its stream has been sent, and the other's has come; fails where the watch
// ends or a connection is lost.
Result<Streamed> stream(const StreamRing& ring, const StreamLimits& limits, const Watch& watch);

}  // namespace tutti
