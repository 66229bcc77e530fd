// Streams along a ring of hosts, to measure bandwidth. Each rank sends to a rank of the next host while it receives
// from a rank of the previous host. The sender decides when its stream ends and marks the end in the stream, so that
// the receiver does not wait for more data.
#pragma once

#include <cstdint>
#include <span>

#include "src/bootstrap/bootstrap.h"
#include "src/communicator/call/hosts.h"

namespace tutti {

// Connections of a rank to the next and previous host; null if the rank does not take part.
struct StreamRing {
  const PeerSocket* next = nullptr;
  const PeerSocket* previous = nullptr;
  std::uint32_t index = 0;  // Index of the rank among the ranks of its host.
  std::uint32_t ranks = 0;  // Number of ranks per host that take part.
};

StreamRing ring_of(const Hosts& hosts, Rank self, std::span<const PeerSocket> peer_sockets);

// Limits of a stream. Units and the maximum size are the same on all ranks. The window limits the bytes in flight; it
// grows with data that has arrived at the receiver. If a stream may end early, another stream must follow only after
// all ranks know of its end.
struct StreamLimits {
  std::uint64_t unit_bytes = 0;  // Streams consist of whole units; the last unit is marked.
  std::uint64_t max_bytes = 0;   // Maximum size; a multiple of `unit_bytes`.
  // Minimum duration. The sender then ends the stream if enough has arrived in the later half.
  double min_us = 0;
  double max_us = 0;               // Maximum duration.
  std::uint64_t window_bytes = 0;  // Minimum window.
  std::uint64_t gone_bytes = 0;    // Bytes sent in earlier streams.
  std::uint64_t slack_bytes = 0;   // Bytes, in all streams, that a rate limiter may have let pass in a burst.
  double growth = 0;               // Growth of the window per byte that arrived beyond the slack.
};

// Received data of one rank, and what it sent.
struct Streamed {
  double us = 0;                 // Time until all data had arrived.
  std::uint64_t bytes = 0;       // Bytes received.
  double late_us = 0;            // Duration of the later half of the arrivals, or slightly more.
  std::uint64_t late_bytes = 0;  // Bytes that arrived in the later half.
  std::uint64_t sent_bytes = 0;
};

// Runs the stream of a rank that takes part. Blocks until its data is sent and all data of the previous host has
// arrived. Fails if the watch ends or a connection is lost.
Result<Streamed> stream(const StreamRing& ring, const StreamLimits& limits, const Watch& watch);

}  // namespace tutti
