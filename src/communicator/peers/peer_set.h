// The ranks of a communicator on devices, as one of them sees the others: where lanes to and from them lie, and how
// much of the devices each can count on.
#pragma once

#include <memory>
#include <vector>

#include "src/communicator/communicator.h"
#include "src/communicator/hosts.h"
#include "src/communicator/peers/home.h"
#include "src/communicator/peers/host_lanes.h"
#include "src/communicator/peers/inbox.h"
#include "src/communicator/peers/lane_placement.h"
#include "src/communicator/peers/remote_lanes.h"

namespace tutti {

class PeerSet {
 public:
  // All ranks call it, and block until they have. Several members are all this process's, driven by this thread; one
  // set for each of them.
  static Result<std::vector<PeerSet>> meet(const std::vector<std::unique_ptr<Communicator>>& members,
                                           const std::shared_ptr<Device>& device);

  // Returns once all ranks have called it.
  static Status await_all(const std::vector<Communicator*>& members);

  PeerSet(PeerSet&&) = default;
  PeerSet& operator=(PeerSet&&) = delete;
  ~PeerSet();

  // A lane of which this rank has an end.
  Result<LanePair> lane(const LaneSpec& spec);

  // Where a rank says which buffers it works on.
  Result<MeetingRecord*> records(Rank rank) const;

  // Closes what it has opened of other processes: no call may follow.
  void let_go();

  // This rank's own.
  DeviceHome& home() const { return *homes_[self_]; }
  const std::shared_ptr<DeviceHome>& shared_home() const { return homes_[self_]; }
  // Home of a rank in this process.
  DeviceHome& home(Rank rank) const { return *homes_[rank]; }
  bool is_here(Rank rank) const { return homes_[rank] != nullptr; }
  bool all_in_process() const { return foreign_ == 0; }
  // Ranks of this host in other processes may have this one's memory open.
  bool has_strangers() const { return !strangers_.empty(); }
  bool each_in_its_own_process() const { return alone_; }
  // True: each rank's thread blocks reach all buffers. On another device they reach only plain allocations, through
  // windows.
  bool on_one_device() const { return one_device_; }
  // Some pair of ranks has its lanes in memory of the host, or of two hosts; the same on all ranks.
  bool through_host() const { return routes_.host_pairs() > 0 || network(); }
  bool network() const { return routes_.network(); }
  // To ranks of other hosts, which somebody has to run.
  std::vector<TcpConnection*> connections() const;
  const Hosts& hosts() const { return hosts_; }
  // No call follows, nobody runs the connections for them, and their memory is given back later.
  std::vector<std::shared_ptr<RemoteLanes>> close_remote_lanes();
  // Whether all that this rank has posted to other hosts goes on by itself.
  bool drained() const;
  // Ranks whose lanes to this one come to lie in its home.
  Rank writers_at_home() const { return routes_.writers_by(LanePlacement::home, self_); }
  Rank ranks() const { return static_cast<Rank>(homes_.size()); }
  // Some rank has its device in turns with another of them: no thread block may wait for a peer. The same on all ranks.
  bool in_turns() const { return in_turns_; }
  // Channels of a rank that can be under way at once; the same on all ranks.
  std::uint32_t thread_blocks() const { return thread_blocks_; }
  // The same on all ranks.
  const LaneBudget& lanes() const { return budget_; }
  // The same for the ranks of one communicator in this process alone.
  std::uint64_t family() const { return family_; }

 private:
  struct PeerInfo;
  using PeerInfos = std::vector<PeerInfo>;  // By rank.
  using Set = std::vector<PeerSet>;
  PeerSet(const Communicator& control, std::shared_ptr<DeviceHome> own);
  bool is_near(Rank peer) const { return hosts_.share(self_, peer); }

  // The steps of meet(), for the members of one process.
  static Status exchange_peer_infos(const std::vector<Communicator*>& members, Set& set, std::vector<PeerInfos>& all);
  static Status pass_files(const std::vector<Communicator*>& members, Set& set, const std::vector<PeerInfos>& infos,
                           const std::vector<File>& files);
  static Status find_routes(const std::vector<Communicator*>& members, Set& set, const std::vector<PeerInfos>& all);
  static Status share_host_memory(const std::vector<Communicator*>& members, Set& set);
  static Status open_remote_lanes(const std::vector<Communicator*>& members, Set& set);

  PeerInfo introduce();
  void find_strangers(const PeerInfos& infos);
  Status pass_file(Communicator& control, const File& file);
  Status take_files(Communicator& control, const PeerInfos& infos, Rank first, Rank end);
  Status check_routes(const std::vector<LanePlacement>& table, const PeerInfos& infos) const;
  Status get_to_know(const PeerInfos& infos);
  void count_queues(const PeerInfos& infos) const;
  // As a writer, to each reader.
  Result<std::vector<LanePlacement>> try_routes(const PeerInfos& infos);
  Result<LanePlacement> try_route(const PeerInfo& info, Rank peer, std::string& how);
  void follow(LanePlacements routes);
  Status use_host_memory(Segment memory);
  // contexts[a * ranks + b]: of the lanes between ranks a and b on their connection, as the lower of them says.
  Status open_remote_lanes(const Mesh& mesh, const std::vector<std::uint32_t>& contexts);

  Rank self_;
  Hosts hosts_;
  std::vector<std::shared_ptr<DeviceHome>> homes_;  // By rank; null: in another process.
  LanePlacements routes_;
  std::vector<Inbox> to_, from_;         // By rank; of those whose lanes do not lie in a home.
  std::vector<File> files_;              // Descriptors of memory of other processes, by rank, until it is opened.
  std::vector<std::byte*> opened_;       // That memory; null: none.
  std::vector<MeetingRecord*> records_;  // In that memory.
  std::unique_ptr<HostLanes> in_host_;
  std::vector<std::shared_ptr<RemoteLanes>> spans_hosts_;  // By rank; null: on this host.
  std::vector<Rank> strangers_;                            // Ranks of this host in other processes.
  Rank foreign_ = 0;                                       // Ranks in other processes, or on other hosts.
  bool one_device_ = false, in_turns_ = false, alone_ = false;
  std::uint32_t thread_blocks_ = 0;
  LaneBudget budget_;
  std::uint64_t family_ = 0;
};

}  // namespace tutti
