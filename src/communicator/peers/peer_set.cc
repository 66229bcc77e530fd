#include "src/communicator/peers/peer_set.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/base/atomic.h"
#include "src/base/config.h"
#include "src/base/log.h"
#include "src/communicator/control/board.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/planning/rings.h"

namespace tutti {
PeerSet::PeerSet(const Communicator& control, std::shared_ptr<RankDeviceMemory> own)
    : self_(control.rank()),
      hosts_(control.mesh().hosts()),
      rails_(rail_rank_mapping(hosts_)),
      memories_(control.ranks()),
      to_(control.ranks()),
      from_(control.ranks()),
      files_(control.ranks()),
      opened_(control.ranks()),
      records_(control.ranks()),
      remote_lanes_(control.ranks()),
      host_of_(hosts_.first_ranks()),
      spans_hosts_(control.mesh().any_remote()) {
  memories_[self_] = std::move(own);
}

PeerSet::~PeerSet() { release_all(); }

void PeerSet::place(const Hosts& hosts) {
  hosts_ = hosts;
  rails_ = Rails(rail_rank_mapping(hosts_));
  domain_has_hosts_ = false;
  for (Rank peer = 0; peer < ranks(); ++peer)
    domain_has_hosts_ = domain_has_hosts_ || (in_same_domain(peer) && !on_this_host(peer));
}

bool PeerSet::domain_has_left(const Board& board) const {
  for (Rank peer = 0; peer < ranks(); ++peer)
    if (in_same_domain(peer) && !on_this_host(peer) && load_acquire(&board.entry(peer).left) == 0) return false;
  return true;
}

Result<DeviceShare> PeerSet::allocate_exported_lanes(std::size_t bytes, File& file) const {
  const std::size_t ring_bytes = budget_.ring.bytes();
  if (domain_has_hosts_) return own_memory().allocate_lanes_for_domain(bytes, ring_bytes);
  return own_memory().allocate_exported_lanes(bytes, file, ring_bytes);
}

void PeerSet::release_all() {
  for (std::byte*& memory : opened_) {
    if (memory != nullptr) own_memory().device().close(std::exchange(memory, nullptr));
  }
}

bool PeerSet::has_large_lanes() const {
  const std::size_t lanes_bytes = peers_in(hosts_, rails_).local * budget_.lanes_bytes();
  return !one_device_ && (lanes_bytes > kSmallLaneBytes || budget_.ring.bytes() > kSmallRing.bytes());
}

std::size_t PeerSet::exported_bytes() const {
  const auto near =
      std::count(hosts_.first_ranks().begin(), hosts_.first_ranks().end(), hosts_.first_rank_of_host(self_));
  return static_cast<std::size_t>(near - 1) * budget_.bytes;
}

std::size_t PeerSet::region_at(Rank writer, Rank reader) const {
  std::size_t before = 0;
  for (Rank rank = 0; rank < writer; ++rank) before += rank != reader && in_same_domain(rank) ? 1 : 0;
  return before * budget_.bytes;
}

// Called when all ranks have exchanged their tables. From then on, all ranks use the same placements.
void PeerSet::apply_routes(const Routes& table) {
  std::vector<LanePlacement> placements;
  for (const Route& route : table) placements.push_back(route.placement);
  routes_ = LanePlacements(ranks(), std::move(placements));
  all_on_nvlink_ = std::all_of(table.begin(), table.end(), [](const Route& route) { return route.all_on_nvlink != 0; });
  const std::size_t bytes = budget_.bytes;
  for (Rank peer = 0; peer < ranks(); ++peer) {
    if (peer == self_) continue;
    if (opened_[peer] != nullptr) records_[peer] = reinterpret_cast<AddressRecord*>(opened_[peer] + exported_bytes());
    if (routes_.between(self_, peer) == LanePlacement::ipc)
      to_[peer] = PairLanes(opened_[peer] + region_at(self_, peer), bytes);
    if (routes_.between(peer, self_) == LanePlacement::ipc)
      from_[peer] = PairLanes(own_memory().exported_lanes() + region_at(peer, self_), bytes);
  }
  free_unused_lanes();
}

void PeerSet::free_unused_lanes() {
  if (routes_.writers_by(LanePlacement::ipc, self_) == 0 && !(wants_multicast_ && ring().channels > 0))
    own_memory().free_exported_lanes();
}

Status PeerSet::use_host_memory(Segment memory) {
  in_host_ = std::make_unique<MappedSegment>(own_memory().shared_device(), std::move(memory));
  const auto region = [this](Rank writer, Rank reader) -> Result<PairLanes> {
    const std::size_t at = routes_.host_pairs_before(writer, reader) * budget_.bytes;
    return PairLanes(TUTTI_TRY(in_host_->map(at, budget_.bytes)), budget_.bytes);
  };
  for (Rank peer = 0; peer < ranks(); ++peer) {
    if (peer == self_) continue;
    if (routes_.between(self_, peer) == LanePlacement::host) to_[peer] = TUTTI_TRY(region(self_, peer));
    if (routes_.between(peer, self_) == LanePlacement::host) from_[peer] = TUTTI_TRY(region(peer, self_));
  }
  return {};
}

Status PeerSet::open_remote_lanes(const Mesh& mesh, const std::vector<std::uint32_t>& contexts) {
  std::vector<std::string> how(ranks(), "this host");
  for (const Rank peer : mesh.remote_ranks()) {
    how[peer] = "NVLink domain";
    if (in_same_domain(peer)) continue;
    const std::uint32_t context = contexts[std::size_t{std::min(self_, peer)} * ranks() + std::max(self_, peer)];
    if (context == 0)
      return remote_error("rank " + std::to_string(peer) + " has not reported its lanes between the hosts");
    const RemoteLanesOptions options = {context, budget_, rails_.between(self_, peer), config().gpudirect};
    remote_lanes_[peer] = TUTTI_TRY(RemoteLanes::make(own_memory().shared_device(), mesh.connection(peer), options));
    how[peer] = remote_lanes_[peer]->how();
  }
  if (!logs(LogLevel::info)) return {};
  const LogDevice named(static_cast<int>(own_memory().device().traits().ordinal));
  log(LogLevel::info, "rank %u, slots of lanes to other hosts: %s", self_, describe_routes(how, self_).c_str());
  return {};
}

bool PeerSet::holds_remote_ll() const {
  if (routes_.host_pairs() > 0) return false;
  for (Rank peer = 0; peer < ranks(); ++peer) {
    const auto& lanes = remote_lanes_[peer];
    const bool on_rail = lanes != nullptr && rails_.between(self_, peer) != RemotePeers::all;
    if (on_rail && !lanes->holds_ll()) return false;
  }
  return true;
}

std::vector<TcpConnection*> PeerSet::connections() const {
  std::vector<TcpConnection*> all;
  for (const auto& lanes : remote_lanes_) {
    if (lanes != nullptr) all.push_back(&lanes->connection());
  }
  return all;
}

std::vector<std::shared_ptr<RemoteLanes>> PeerSet::close_remote_lanes() {
  std::vector<std::shared_ptr<RemoteLanes>> all;
  for (auto& lanes : remote_lanes_) {
    if (lanes == nullptr) continue;
    lanes->close();
    all.push_back(std::move(lanes));
  }
  return all;
}

bool PeerSet::drained() const {
  return std::all_of(remote_lanes_.begin(), remote_lanes_.end(),
                     [](const auto& lanes) { return lanes == nullptr || lanes->drained(); });
}

Result<AddressRecord*> PeerSet::records(Rank rank) const {
  if (memories_[rank] == nullptr) return records_[rank];
  return memories_[rank]->records();
}

Result<std::byte*> PeerSet::ring(Rank rank) const {
  if (!in_same_domain(rank)) return nullptr;
  if (memories_[rank] == nullptr) return opened_[rank] + exported_bytes() + kRecordsBytes;
  return memories_[rank]->ring(budget_.ring.bytes());
}

Result<LanePair> PeerSet::lane(const LaneSpec& spec) {
  if (routes_.between(spec.writer, spec.reader) == LanePlacement::same_process)
    return memories_[spec.reader]->lane(spec);
  const bool writes = spec.writer == self_;
  RemoteLanes* remote = remote_lanes_[writes ? spec.reader : spec.writer].get();
  if (remote != nullptr) return remote->lane(spec, writes ? LaneEnd::writer : LaneEnd::reader);
  return writes ? to_[spec.reader].lane(spec) : from_[spec.writer].lane(spec);
}

}  // namespace tutti
