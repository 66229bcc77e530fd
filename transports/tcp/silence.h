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
  std::uint32_t window = 0;        // Bytes that the peer has room for, as it said last.
  std::uint8_t retransmits = 0;    // Retransmissions of the first segment.
  std::uint8_t probes = 0;         // Window or keepalive probes without an answer. Any incoming segment sets it to 0.
};

class SilenceDetector {
 public:
  // Returns how long the peer's host has been silent once that proves it out of reach, else 0. A host is out of reach
  // if it has not acknowledged anything for 3.5 s that it must acknowledge, although TCP has tried twice to send it.
  //
  // Data within the peer's window must be acknowledged by its kernel, even while the process is stopped. Segments that
  // come in prove nothing: where only the path to the peer is cut, the peer keeps retransmitting. While the window is
  // closed, the peer is alive as long as it answers probes.
  std::int64_t update(const TcpSample& sample);

 private:
  std::uint64_t acknowledged_ = 0;
  std::int64_t since_ns_ = 0;   // Since then an acknowledgement is due and has not come.
  bool due_ = false;            // An acknowledgement was due at the last sample.
  std::uint32_t attempts_ = 0;  // Retransmissions and probes since then,
  std::uint32_t counted_ = 0;   // and TCP's counter of them at the last sample.
};

}  // namespace tutti
