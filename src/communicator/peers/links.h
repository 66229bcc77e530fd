// This rank's ends of lanes in the memory of devices, for as long as the communicator lives. No end waits for the
// other: whoever is first makes the lane.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "src/communicator/peers/peer_set.h"
#include "src/communicator/planning/lane_specs.h"
#include "src/executor/lane_io.h"

namespace tutti {

class DeviceLinks {
 public:
  // Outlived by the peers.
  DeviceLinks(Rank self, PeerSet& peers) : self_(self), peers_(peers) {}

  // Sizes of slots.
  const SlotSizes& slots() const { return peers_.lanes().slots; }

  // A lane of this rank's plan, on channel 0. All are one-way: what other forms save are transfers between the caches
  // of CPUs.
  LaneSpec spec(const LaneUse& use, Protocol protocol) const;

  // Makes the lanes of plans, of which channel c has number c % specs.size(), on so many channels: in an order that
  // their other ends share, so that both find the same places for them.
  Status lay(std::span<const std::vector<LaneSpec>> specs, std::uint32_t channels);

  // This rank's end of a lane that exists on some channel, with a view that the host may read but not dereference;
  // plans are compiled with it. The forward lane if `writer` and `tag` are those of the spec, else its partner.
  struct Wanted {
    Rank writer = 0;
    std::uint16_t tag = 0;
    LaneEnd which = LaneEnd::writer;
    std::uint32_t channel = 0;
  };
  Result<LaneState*> end(const LaneSpec& spec, const Wanted& wanted);

  // Ends on each channel that belong to its plan, as thread blocks read them: [channel * max ends + end].
  Result<std::vector<LaneState*>> on_device(std::span<const std::span<LaneState* const>> ends, std::uint32_t channels);

 private:
  struct End {
    LaneState state;  // First: an end is known by its address.
    LaneSpec spec;    // On channel 0, or the first of messages.
    bool forward = true;
    std::vector<LaneState*> by_channel;  // On the device; null: not yet.
  };
  using Key = std::tuple<LaneSpec, bool, LaneEnd>;
  static LaneView view_of(const LanePair& pair, bool forward) { return forward ? pair.forward : pair.partner; }

  Rank self_;
  PeerSet& peers_;
  std::map<Key, std::unique_ptr<End>> ends_;
  std::map<const LaneState*, End*> by_state_;
};

}  // namespace tutti
