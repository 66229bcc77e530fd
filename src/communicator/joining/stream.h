// Streams along a ring of hosts, to measure bandwidth: each rank sends to a rank of the next host while it receives
// from one of the previous host. The sender decides when its stream ends, and marks the end in the stream, so that
// the receiver does not wait for more.
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
  std::uint32_t ranks = 0;  // Number of ranks per host that take part.
};

StreamRing ring_of(const Hosts& hosts, Rank self, std::span<const PeerSocket> peer_sockets);

// Limits of a stream. Units and the maximum size are the same on all ranks. Bytes in flight are limited by the
// window, which grows with data that has arrived at the receiver. A stream that may end early is followed by
// another only after all ranks know of its end.
struct StreamLimits {
  std::uint64_t unit_bytes = 0;  // Streams are of whole ones; the last is marked.
  std::uint64_t max_bytes = 0;   // In whole units.
  double min_us = 0;             // Minimum duration, after which the sender ends if the later half has enough arrivals.
  double max_us = 0;             // or for so long, whatever has.
  std::uint64_t window_bytes = 0;  // At least.
  std::uint64_t gone_bytes = 0;    // In streams before.
  std::uint64_t slack_bytes = 0;   // So much of all that has gone may have passed some limit of the rate at once.
  double growth = 0;               // Growth of the window per byte that arrived beyond the slack.
};

// Result of one rank.
struct Streamed {
  double us = 0;                 // Until all had come,
  std::uint64_t bytes = 0;       // which were these.
  double late_us = 0;            // Duration of the later half of the arrivals, or slightly more.
  std::uint64_t late_bytes = 0;  // and what came then.
  std::uint64_t sent_bytes = 0;
};

// Called by a rank that takes part. Blocks until its stream is sent and the other one received. Fails if the watch
// ends or a connection is lost.
Result<Streamed> stream(const StreamRing& ring, const StreamLimits& limits, const Watch& watch);

}  // namespace tutti
