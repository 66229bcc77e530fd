// Decides, from samples of TCP's state, whether the host at the other end of a connection is out of reach.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti {

// State of one socket at one time.
struct TcpSample {
  std::int64_t now_ns = 0;
  std::uint64_t acknowledged = 0;  // Bytes that the peer has acknowledged so far.
  std::size_t unacknowledged = 0;  // Bytes in the send queue: in flight, or not sent yet.
  std::uint32_t in_flight = 0;     // Segments sent and not acknowledged.
  std::uint32_t window = 0;        // Free bytes of the peer's receive buffer, by its last report.
  std::uint8_t retransmits = 0;    // Retransmissions of the first segment.
  std::uint8_t probes = 0;         // Window or keepalive probes without an answer. Any incoming segment sets it to 0.
};

class SilenceDetector {
 public:
  // Returns for how long the peer's host has been silent if it is out of reach, else 0. A host is out of reach if it
  // owes an acknowledgement for 3.5 s although TCP has tried twice to send.
  //
  // The peer's kernel acknowledges data within its window even while the process is stopped. Incoming segments prove
  // nothing: a peer keeps retransmitting if only the path to it is cut. With a closed window, the peer is alive as long
  // as it answers probes.
  std::int64_t update(const TcpSample& sample);

 private:
  std::uint64_t acknowledged_ = 0;
  std::int64_t since_ns_ = 0;   // Time since which an acknowledgement is overdue.
  bool due_ = false;            // An acknowledgement was due at the last sample.
  std::uint32_t attempts_ = 0;  // Retransmissions and probes since since_ns_.
  std::uint32_t counted_ = 0;   // TCP's counter of them at the last sample.
};

}  // namespace tutti
