// Lane ends of this rank on devices. They live as long as the communicator. An end does not wait for its peer: the
// first end creates the lane.
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

class DeviceLanes {
 public:
  // `peers` must outlive this object.
  DeviceLanes(Rank self, PeerSet& peers) : self_(self), peers_(peers) {}

  SlotSizes slots_to(Rank peer) const { return peers_.slots_to(peer); }

  // Returns a lane of this rank's plan on channel 0. Its form is always one_way: the other forms only save transfers
  // between CPU caches.
  LaneSpec spec(const LaneUse& use, Protocol protocol) const;

  // Creates the lanes of plans on `channels` channels; channel c uses specs[c % specs.size()]. Peers create their ends
  // in the same order and thus find the same addresses.
  Status create_lanes(std::span<const std::vector<LaneSpec>> specs, std::uint32_t channels);

  // Returns this rank's end of a lane, for compiling plans. The host must not dereference the pointers in its view.
  // `wanted` selects the channel, and the forward lane if `writer` and `tag` are those of the spec, else its partner.
  struct Wanted {
    Rank writer = 0;
    std::uint16_t tag = 0;
    LaneEnd which = LaneEnd::writer;
    std::uint32_t channel = 0;
  };
  Result<LaneState*> end(const LaneSpec& spec, const Wanted& wanted);

  // Returns a table of ends as thread blocks read it: [channel * max ends + end]; see KernelCall::ends(). The lanes
  // exist already, or are created.
  Result<std::vector<LaneState*>> upload_ends(std::span<const std::span<LaneState* const>> ends,
                                              std::uint32_t channels);

 private:
  // Plans identify an end by the address of its state.
  struct End : LaneState {
    LaneSpec spec;  // On channel 0, or on the first channel of messages.
    bool forward = true;
    std::vector<LaneState*> by_channel;  // In device memory; null: not uploaded yet.
  };
  using Key = std::tuple<LaneSpec, bool, LaneEnd>;
  static LaneView view_of(const LanePair& pair, bool forward) { return forward ? pair.forward : pair.partner; }

  Rank self_;
  PeerSet& peers_;
  std::map<Key, std::unique_ptr<End>> ends_;
};

}  // namespace tutti
