// Buffers of calls that all ranks can map: plans then read and write the peers' memory in place.
//
// A rank whose buffers can be mapped publishes their addresses, and waits for the records of the other ranks. A rank
// whose buffers cannot be mapped publishes that and does not wait. All ranks see the same records, so all ranks that
// wait make the same decision.
#pragma once

#include <cstdint>
#include <vector>

#include "src/communicator/call/call.h"
#include "src/communicator/membership/control_plane.h"
#include "src/executor/program.h"

namespace tutti {

enum class BufferVisibility : std::uint8_t { waiting, hidden, mapped };

// Returns whether all ranks may be able to map the buffers, as far as this rank knows.
bool may_be_mapped(const Membership& membership, const Call& call);

// Only the thread that runs calls may use it. No function waits.
class MappedBuffers {
 public:
  explicit MappedBuffers(ControlPlane& control);

  // Writes the buffers of a call to its record, and passes their regions to peers that lack them.
  void show(CallRecord& record, const Problem& problem, const Call& call);
  // Returns whether all ranks show their buffers in the call of `record`. If they do, peers() has their addresses. If
  // it depends on another rank, sets `awaited`.
  Result<BufferVisibility> see(const CallRecord& record, const Problem& problem, Rank& awaited);
  // Returns the buffers of all ranks in this process, by rank. Valid until the next call; the address does not change.
  const RankBuffers* peers() const { return peers_.data(); }

 private:
  BufferReference refer(const std::byte* memory, std::uint64_t bytes);
  Status receive_regions();
  Status locate_all(const CallRecord& own, const Problem& problem);
  Result<std::byte*> locate(Rank peer, const BufferReference& reference, std::uint64_t bytes);

  Membership& membership_;
  const CurrentCall& current_;
  const CallMatching& matching_;
  PassedRegions passed_regions_;
  std::vector<RankBuffers> peers_;
};

}  // namespace tutti
