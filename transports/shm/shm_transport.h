// Lanes in shared memory between the ranks of one host, whether ranks are processes or threads.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "transports/shm/segment.h"
#include "transports/transport.h"

namespace tutti {

// One rank's lanes and the segments of its peers. Not thread-safe.
class ShmTransport {
 public:
  explicit ShmTransport(std::uint32_t self) : self_(self) {}

  // Allocates a lane, or a pair of lanes, in a segment of this rank.
  Result<LaneAddress> create(const LaneSpec& spec);
  // Returns a segment of this rank, by the index in a LaneAddress, to be passed to the other end.
  const Segment& segment(std::uint32_t index) const { return own_[index]; }

  Status adopt(std::uint32_t peer, std::uint32_t segment, Segment memory);

  // Returns the view of a lane. `owner`: rank that created it, which is this rank or a peer whose segment was adopted.
  // Fails if the address is out of bounds.
  Result<LanePair> view(const LaneSpec& spec, std::uint32_t owner, const LaneAddress& address) const;

 private:
  std::uint32_t self_;
  std::vector<Segment> own_;
  std::size_t used_ = 0;  // Bytes of own_.back() in use.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Segment> peers_;
};

}  // namespace tutti
