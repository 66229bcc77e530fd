// The multicast object of the ranks of a host, to which all bind their staging rings.
#include <utility>

#include "src/communicator/peers/multicast.h"
#include "src/communicator/peers/peer_set.h"

namespace tutti {

Status PeerSet::bind_multicast(const std::vector<Communicator*>& members, Set& set) {
  std::vector<MulticastMember> own;
  for (std::size_t i = 0; i < set.size(); ++i) {
    RankDeviceMemory& memory = set[i].own_memory();
    own.push_back({members[i], &memory.device(), memory.exported_lanes()});
  }
  std::vector<BoundMulticast> bound = TUTTI_TRY(bind_to_multicast(own, "sums"));
  for (std::size_t i = 0; i < set.size() && bound[i].object != nullptr; ++i)
    set[i].multicast_ring_ = set[i].own_memory().keep_multicast(std::move(bound[i].object), bound[i].address);
  return {};
}

}  // namespace tutti
