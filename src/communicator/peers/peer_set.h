// The ranks of a communicator on devices, as one rank sees them: placement of lanes, and shares of the devices.
#pragma once

#include <memory>
#include <vector>

#include "src/communicator/call/hosts.h"
#include "src/communicator/communicator.h"
#include "src/communicator/peers/lane_placement.h"
#include "src/communicator/peers/mapped_segment.h"
#include "src/communicator/peers/pair_lanes.h"
#include "src/communicator/peers/rank_device_memory.h"
#include "src/communicator/peers/remote_lanes.h"
#include "src/communicator/planning/rails.h"

namespace tutti {

class PeerSet {
 public:
  // Collective; blocks until all ranks have called it. Several members must all belong to this process and be driven by
  // this thread. Returns one set per member.
  static Result<std::vector<PeerSet>> connect(const std::vector<Communicator*>& members,
                                              const std::shared_ptr<Device>& device);

  // Returns once all ranks have called it. `members`: ranks that this thread drives.
  static Status await_all(const std::vector<Communicator*>& members);

  PeerSet(PeerSet&&) = default;
  PeerSet& operator=(PeerSet&&) = delete;
  ~PeerSet();

  // Returns a lane of which this rank is an end.
  Result<LanePair> lane(const LaneSpec& spec);

  // Returns the records in which `rank` announces the buffers of its calls.
  Result<AddressRecord*> records(Rank rank) const;

  // Returns the staging ring of `rank`, at its address for this rank's device; null for ranks of other hosts. The rank
  // must have one.
  Result<std::byte*> ring(Rank rank) const;

  // Closes memory of other processes. No call may follow.
  void release_all();

  // Device memory of this rank.
  RankDeviceMemory& own_memory() const { return *memories_[self_]; }
  const std::shared_ptr<RankDeviceMemory>& shared_own_memory() const { return memories_[self_]; }
  // Device memory of another rank in this process.
  RankDeviceMemory& memory_of(Rank rank) const { return *memories_[rank]; }
  bool is_here(Rank rank) const { return memories_[rank] != nullptr; }
  // True if ranks of this host or NVLink domain in other processes may have this rank's memory open.
  bool has_other_processes() const { return !other_processes_.empty(); }
  // True if no rank of another host can still access this rank's memory. `board`: that of the communicator.
  bool domain_has_left(const Board& board) const;
  bool each_in_its_own_process() const { return own_process_; }
  // True if thread blocks of every rank can access all buffers. Other devices are accessible only through windows, and
  // only for plain allocations.
  bool on_one_device() const { return one_device_; }
  // True if the lanes of some pair of ranks are in host memory. The same on all ranks.
  bool through_host() const { return routes_.host_pairs() > 0 || network(); }
  bool network() const { return routes_.network(); }
  // True if LL serves lanes along rails and those within hosts. The same on all ranks.
  bool has_remote_ll() const { return budget_.remote_ll_channels > 0 && network(); }
  // True if some ranks are on other hosts, which the network or NVLinks connect. The same on all ranks.
  bool spans_hosts() const { return spans_hosts_; }
  // True if the ranks of each pair on a host share a GPU or are connected by NVLink, which delivers 128 bytes together.
  // The same on all ranks.
  bool all_on_nvlink() const { return all_on_nvlink_; }
  // Connections to ranks of other hosts. The caller must advance them.
  std::vector<TcpConnection*> connections() const;
  // The hosts of the ranks. Hosts of an NVLink domain count as one.
  const Hosts& hosts() const { return hosts_; }
  // Pairs of ranks on different hosts that have lanes on more channels than others. The same on all ranks.
  const Rails& rails() const { return rails_; }
  // Closes lanes to other hosts, and returns them so that their memory can be freed later. No call may follow, and the
  // connections must not be advanced for these lanes.
  std::vector<std::shared_ptr<RemoteLanes>> close_remote_lanes();
  // True if everything that this rank has sent to other hosts proceeds without further calls.
  bool drained() const;
  // Number of ranks whose lanes to this one are in its memory, which the writers access as ranks of its process.
  Rank writers_in_process() const { return routes_.writers_by(LanePlacement::same_process, self_); }
  Rank ranks() const { return static_cast<Rank>(memories_.size()); }
  // True if some rank shares its device with another one in time slices: a thread block must not wait for a peer then.
  // The same on all ranks.
  bool time_sliced() const { return time_sliced_; }
  // True if another rank of the communicator uses the device of this one.
  bool shares_device() const { return shares_device_; }
  // Channels that a rank can run at once. The same on all ranks.
  std::uint32_t thread_blocks() const { return thread_blocks_; }
  // Maximum of a message: the least CommunicatorOptions::max_channels of the ranks. The same on all ranks.
  std::uint32_t max_channels() const { return max_channels_; }
  // Sizes of lanes. The same on all ranks.
  const LaneBudget& lanes() const { return budget_; }
  // Slots of lanes from and to a rank.
  SlotSizes slots_to(Rank peer) const {
    return hosts_.same_host(self_, peer) ? budget_.slots : budget_.slots_between_hosts(rails_.between(self_, peer));
  }
  // The staging ring that each rank has; none unless NVLink connects all ranks of each host, or they share GPUs. Ranks
  // on one device access buffers instead. The same on all ranks.
  StagingRing ring() const { return all_on_nvlink_ && !one_device_ ? budget_.ring : StagingRing(); }
  // Address of all staging rings of this host together, for switches that add and multicast; null if there is none.
  // Null on all ranks or on none.
  std::byte* multicast_ring() const { return multicast_ring_; }
  // Number that the ranks of one communicator in this process have in common.
  std::uint64_t process_group_id() const { return process_group_id_; }

 private:
  struct PeerInfo;
  // Route from this rank to another, for the other ranks.
  struct Route {
    LanePlacement placement = LanePlacement::same_process;
    std::uint8_t all_on_nvlink = 1;  // Also between hosts.
  };
  using Routes = std::vector<Route>;        // By reader, or by writer and reader.
  using PeerInfos = std::vector<PeerInfo>;  // By rank.
  using Set = std::vector<PeerSet>;
  PeerSet(const Communicator& control, std::shared_ptr<RankDeviceMemory> own);
  // True for ranks of this host, and of other hosts of its NVLink domain.
  bool in_same_domain(Rank peer) const { return hosts_.same_host(self_, peer); }
  bool on_this_host(Rank peer) const { return host_of_[peer] == host_of_[self_]; }
  // True if lanes between devices of a host or the staging ring, also that between hosts, take more than in a further
  // communicator.
  bool has_large_lanes() const;
  // Memory of this host's ranks for lanes from other processes: bytes, and the offset of a writer's lanes in it.
  std::size_t exported_bytes() const;
  std::size_t region_at(Rank writer, Rank reader) const;

  // Sets hosts(), with the ranks of NVLink domains joined.
  void place(const Hosts& hosts);
  // Allocates the exported lanes, of this size and with the staging ring of the budget. See RankDeviceMemory.
  Result<DeviceShare> allocate_exported_lanes(std::size_t bytes, File& file) const;

  // The steps of connect(), for the members of one process.
  static Status exchange_peer_infos(const std::vector<Communicator*>& members, Set& set, std::vector<PeerInfos>& all);
  static Status pass_files(const std::vector<Communicator*>& members, Set& set, const std::vector<PeerInfos>& infos,
                           const std::vector<File>& files);
  static Status find_routes(const std::vector<Communicator*>& members, Set& set, const std::vector<PeerInfos>& all);
  static Status share_host_memory(const std::vector<Communicator*>& members, Set& set);
  static Status open_remote_lanes(const std::vector<Communicator*>& members, Set& set);
  static Status agree_on_remote_ll(const std::vector<Communicator*>& members, Set& set);
  static Status bind_multicast(const std::vector<Communicator*>& members, Set& set);

  // Returns the information about this rank for its peers.
  PeerInfo describe_self(const Communicator& member);
  bool wants_multicast(const PeerInfos& infos) const;
  static LaneLimit lane_limit(const LanePeers& peers, const PeerInfos& infos);
  void find_other_processes(const PeerInfos& infos);
  Status pass_file(Communicator& control, const File& file);
  Status take_files(Communicator& control, const PeerInfos& infos, Rank first, Rank end);
  Status check_routes(const Routes& table, const PeerInfos& infos) const;
  Status set_peers(const PeerInfos& infos);
  void count_queues(const PeerInfos& infos) const;
  // Determine, as a writer, the placement of the lanes to each reader.
  Result<Routes> try_routes(const PeerInfos& infos);
  Result<Route> try_route(const PeerInfo& info, Rank peer, std::string& how);
  void apply_routes(const Routes& table);
  // Frees the exported lanes if no other process writes to them, and no multicast object needs the ring in them.
  void free_unused_lanes();
  Status use_host_memory(Segment memory);
  // contexts[a * ranks + b]: context of the lanes between ranks a and b on their connection; the lower rank chose it.
  Status open_remote_lanes(const Mesh& mesh, const std::vector<std::uint32_t>& contexts);
  // True if this rank's lanes may use LL, within the host and along its rail to other hosts.
  bool holds_remote_ll() const;

  Rank self_;
  Hosts hosts_;
  Rails rails_;
  std::vector<std::shared_ptr<RankDeviceMemory>> memories_;  // By rank; null: in another process.
  LanePlacements routes_;
  std::vector<PairLanes> to_, from_;     // By rank, for lanes that are not in the memory of a rank of this process.
  std::vector<File> files_;              // By rank: file descriptors of other processes' memory, until it is opened.
  std::vector<std::byte*> opened_;       // By rank: opened memory of other processes; null: none.
  std::vector<AddressRecord*> records_;  // By rank: records in this memory. The staging ring follows.
  // Lanes between devices that cannot access each other. The ranks of a host share the segment, and each maps the pages
  // of its own pairs.
  std::unique_ptr<MappedSegment> in_host_;
  std::vector<std::shared_ptr<RemoteLanes>> remote_lanes_;  // By rank; null: on this host.
  std::vector<Rank> other_processes_;                       // Ranks of this host or domain in other processes.
  std::vector<Rank> host_of_;      // By rank: first rank of its host, whatever its NVLink domain.
  bool spans_hosts_ = false;       // See spans_hosts().
  bool domain_has_hosts_ = false;  // Some ranks of the same domain are on other hosts.
  bool one_device_ = false, time_sliced_ = false, own_process_ = false, shares_device_ = false;
  bool all_on_nvlink_ = false;
  // All ranks are on devices of their own with multicast objects; see suits_multicast().
  bool wants_multicast_ = false;
  std::byte* multicast_ring_ = nullptr;
  std::uint32_t thread_blocks_ = 0, max_channels_ = ~0U;
  LaneBudget budget_;
  std::uint64_t process_group_id_ = 0;
};

}  // namespace tutti
