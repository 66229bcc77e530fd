// Setup of peers on devices. Ranks gather their locations, then their resources for others, then reachability.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "src/base/config.h"
#include "src/base/log.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/peers/deferred_frees.h"
#include "src/communicator/peers/gather.h"
#include "src/communicator/peers/multicast.h"
#include "src/communicator/peers/nvlink_domains.h"
#include "src/communicator/peers/peer_info.h"
#include "src/communicator/peers/peer_set.h"
#include "src/tuner/choose_over_hosts.h"

namespace tutti {
namespace {

bool requests_ring_over_hosts(const Communicator& member) { return is_staged_over_hosts(member.options().algorithm); }

// True if multicast objects can serve a plan: hosts have equally many ranks, and more than one. Several hosts, only if
// the tuner may choose the plan, or all ranks request it.
bool suits_multicast(const Hosts& hosts, bool requested) {
  std::map<Rank, Rank> ranks_of;  // By first rank of the host.
  for (const Rank first : hosts.first_ranks()) ++ranks_of[first];
  const Rank size = ranks_of.begin()->second;
  const bool chosen = ranks_of.size() == 1 || (size >= kMinSwitchRanks && ranks_of.size() <= kMaxHostsOnRails);
  return size > 1 && (chosen || requested) &&
         std::all_of(ranks_of.begin(), ranks_of.end(), [=](const auto& host) { return host.second == size; });
}

}  // namespace

Result<std::vector<PeerSet>> PeerSet::connect(const std::vector<Communicator*>& members,
                                              const std::shared_ptr<Device>& device) {
  static_assert(sizeof(PeerInfo) == 184);
  Set set;
  std::vector<PeerInfos> infos;
  for (const Communicator* member : members)
    set.push_back(PeerSet(*member, std::make_shared<RankDeviceMemory>(device)));
  TUTTI_CHECK_OK(exchange_peer_infos(members, set, infos));
  for (std::size_t i = 0; i < members.size(); ++i) {
    Status known = set[i].set_peers(infos[i]);
    if (!known.ok()) return members[i]->fail(std::move(known));
    set[i].count_queues(infos[i]);
    if (set[i].has_large_lanes()) set[i].own_memory().set_large_lanes();
  }
  TUTTI_CHECK_OK(find_routes(members, set, infos));
  if (set.front().routes_.host_pairs() > 0) TUTTI_CHECK_OK(share_host_memory(members, set));
  if (set.front().network()) TUTTI_CHECK_OK(open_remote_lanes(members, set));
  if (set.front().wants_multicast_ && set.front().ring().channels > 0) TUTTI_CHECK_OK(bind_multicast(members, set));
  return set;
}

Status PeerSet::await_all(const std::vector<Communicator*>& members) {
  return gather(members, std::vector<std::vector<std::uint64_t>>(members.size(), {0})).status();
}

PeerSet::PeerInfo PeerSet::describe_self(const Communicator& member) {
  PeerInfo info;
  info.process = number_of_process();
  info.memory = RankDeviceMemory::publish(shared_own_memory());
  info.device = own_memory().device().traits().identity;
  info.has_large_lanes = RankDeviceMemory::has_large_lanes(info.device) ? 1 : 0;
  info.min_channels = member.options().min_channels;
  info.max_channels = member.options().max_channels;
  info.thread_blocks = own_memory().device().traits().thread_blocks;
  info.sharing = own_memory().device().traits().sharing;
  info.domain = own_memory().device().traits().domain;
  info.joins_domains = joins_domains() ? 1 : 0;
  info.requests_ring_over_hosts = requests_ring_over_hosts(member) ? 1 : 0;
  info.multicast = config().nvls && own_memory().device().traits().multicast ? 1 : 0;
  return info;
}

// All ranks get the same results, but `members` may be only some of the ranks.
Status PeerSet::exchange_peer_infos(const std::vector<Communicator*>& members, Set& set, std::vector<PeerInfos>& all) {
  std::vector<PeerInfos> own;
  for (std::size_t i = 0; i < set.size(); ++i) {
    own.push_back({set[i].describe_self(*members[i])});
    own.back()[0].driver = set.front().self_;
  }
  all = TUTTI_TRY(gather(members, own));
  const PeerInfos& infos = all.front();
  std::vector<NvlinkDomain> domains;
  const bool join =
      std::all_of(infos.begin(), infos.end(), [](const PeerInfo& info) { return info.joins_domains != 0; });
  for (const PeerInfo& info : infos) domains.push_back(join ? info.domain : NvlinkDomain());
  const Hosts hosts = TUTTI_TRY(join_nvlink_domains(members, set.front().own_memory().shared_device(), domains));
  for (PeerSet& each : set) each.place(hosts);
  const bool wants_multicast = set.front().wants_multicast(infos);
  LanePeers peers = peers_in(hosts, set.front().rails_);
  peers.multicast = wants_multicast;
  const LaneLimit limit = lane_limit(peers, infos);
  LaneBudget budget = budget_for(peers, mapped_page_bytes(), limit);
  const bool one_host = hosts.is_one_host();
  for (PeerSet& each : set) each.wants_multicast_ = wants_multicast;
  if (!one_host && !wants_multicast) budget.ring = {};
  if (one_host && std::all_of(infos.begin(), infos.end(), [](const PeerInfo& info) { return info.is_here(); })) {
    for (PeerSet& each : set) {
      if (limit == LaneLimit::small) each.budget_ = {.slots = budget.slots, .channels = budget.channels};
      each.budget_.ring = budget.ring;
      File file;  // No other process opens the ring.
      // Without this memory, the object for multicast will lack a device.
      if (wants_multicast) (void)each.allocate_exported_lanes(0, file);
    }
    return {};
  }
  std::vector<File> files(set.size());
  for (std::size_t i = 0; i < set.size(); ++i) {
    set[i].budget_ = budget;
    set[i].find_other_processes(all[i]);
    const bool exports = !set[i].other_processes_.empty();
    if (!exports && budget.ring.channels == 0) continue;
    const std::size_t bytes = exports ? set[i].exported_bytes() : 0;
    auto share = set[i].allocate_exported_lanes(bytes, files[i]);
    if (!exports) continue;  // Without this memory, the object for multicast will lack a device.
    own[i][0].failed = share.ok() ? 0 : 1;
    if (share.ok()) own[i][0].exported = share.value();
    else log(LogLevel::warn, "rank %u: %s", set[i].self_, std::move(share).status().message().c_str());
  }
  all = TUTTI_TRY(gather(members, own));
  return pass_files(members, set, all, files);
}

LaneLimit PeerSet::lane_limit(const LanePeers& peers, const PeerInfos& infos) {
  const std::uint32_t few = budget_for(peers, mapped_page_bytes(), LaneLimit::small).channels;
  const bool further = std::any_of(infos.begin(), infos.end(), [few](const PeerInfo& info) {
    return info.has_large_lanes != 0 && info.min_channels <= few;
  });
  return further ? LaneLimit::small : LaneLimit::large;
}

bool PeerSet::wants_multicast(const PeerInfos& infos) const {
  std::set<DeviceIdentity> devices;
  bool requested = true;
  for (const PeerInfo& info : infos) {
    if (info.multicast != 0) devices.insert(info.device);
    requested = requested && info.requests_ring_over_hosts != 0;
  }
  return devices.size() == infos.size() && suits_multicast(hosts_, requested);
}

void PeerSet::find_other_processes(const PeerInfos& infos) {
  for (Rank peer = 0; peer < ranks(); ++peer) {
    if (in_same_domain(peer) && !infos[peer].is_here()) other_processes_.push_back(peer);
  }
}

// Passes few files at a time: the system limits a user's file descriptors in transit to those of one process.
Status PeerSet::pass_files(const std::vector<Communicator*>& members, Set& set, const std::vector<PeerInfos>& infos,
                           const std::vector<File>& files) {
  constexpr Rank kAtOnce = 4;
  const PeerInfos& all = infos.front();
  if (std::none_of(all.begin(), all.end(), [](const PeerInfo& info) { return info.exported.by_file(); })) return {};
  const Rank ranks = set.front().ranks();
  for (Rank first = 0; first < ranks; first += kAtOnce) {
    const Rank end = std::min(first + kAtOnce, ranks);
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (set[i].self_ < first || set[i].self_ >= end || !files[i]) continue;
      Status passed = set[i].pass_file(*members[i], files[i]);
      if (!passed.ok()) return members[i]->fail(std::move(passed));
    }
    for (std::size_t i = 0; i < set.size(); ++i) {
      Status taken = set[i].take_files(*members[i], infos[i], first, end);
      if (!taken.ok()) return members[i]->fail(std::move(taken));
    }
    if (end < ranks) TUTTI_CHECK_OK(await_all(members));
  }
  return {};
}

Status PeerSet::pass_file(Communicator& control, const File& file) {
  for (const Rank peer : other_processes_) TUTTI_CHECK_OK(control.pass(peer, file.get()));
  return {};
}

Status PeerSet::take_files(Communicator& control, const PeerInfos& infos, Rank first, Rank end) {
  for (const Rank peer : other_processes_) {
    if (peer >= first && peer < end && infos[peer].exported.by_file())
      files_[peer] = TUTTI_TRY(control.take_passed(peer));
  }
  return {};
}

Status PeerSet::set_peers(const PeerInfos& infos) {
  // The minimum over all ranks, where several share a device.
  thread_blocks_ = kMaxChannels;
  one_device_ = own_process_ = true;
  for (Rank peer = 0; peer < ranks(); ++peer) {
    const PeerInfo& info = infos[peer];
    const bool reached = info.is_here() && in_same_domain(peer);
    if (reached && peer != self_) memories_[peer] = RankDeviceMemory::find(info.memory);
    if (reached && memories_[peer] == nullptr)
      return remote_error("rank " + std::to_string(peer) +
                          " left while the ranks connected their devices; its error has the reason");
    if (info.failed != 0)
      return remote_error("rank " + std::to_string(peer) +
                          " cannot allocate memory for lanes on its GPU, and logs the reason: free memory there, end "
                          "communicators, or call tutti_mem_trim_cuda in other processes that use this GPU");
    if (info.max_channels != 0) max_channels_ = std::min(max_channels_, info.max_channels);
    shares_device_ = shares_device_ || (peer != self_ && info.device == infos[self_].device);
    if (process_group_id_ == 0 && info.is_here()) process_group_id_ = info.memory;
    time_sliced_ = time_sliced_ || std::any_of(infos.begin(), infos.end(), [&](const PeerInfo& other) {
                     return &other != &info && info.alternates_with(other);
                   });
    const auto sharers =
        std::count_if(infos.begin(), infos.end(), [&](const PeerInfo& other) { return other.device == info.device; });
    thread_blocks_ = std::min(thread_blocks_, info.thread_blocks / static_cast<std::uint32_t>(sharers));
    if (thread_blocks_ == 0)
      return unsupported(std::to_string(sharers) + " ranks share the GPU of rank " + std::to_string(peer) +
                         ", which runs " + std::to_string(info.thread_blocks) +
                         " thread blocks at the same time: use at most as many ranks on a GPU");
    const auto ranks_here =
        std::count_if(infos.begin(), infos.end(), [&](const PeerInfo& other) { return other.process == info.process; });
    own_process_ = own_process_ && ranks_here == 1;
    one_device_ = one_device_ && in_same_domain(peer) && info.process == infos.front().process &&
                  info.device == infos.front().device;
  }
  return {};
}

// Streams that share a hardware queue run one after another. A rank's second call, which waits for its first, may then
// delay the call of another rank for which that first call waits. Ranks driven by one thread are launched together.
// Warns if a device has fewer queues than threads that drive it.
void PeerSet::count_queues(const PeerInfos& infos) const {
  std::set<Rank> drivers;
  for (const PeerInfo& info : infos) {
    if (info.is_here() && info.device == infos[self_].device) drivers.insert(info.driver);
  }
  const DeviceTraits& device = own_memory().device().traits();
  if (drivers.size() <= device.queues || *drivers.begin() != self_) return;
  const LogDevice named(static_cast<int>(own_memory().device().traits().ordinal));
  log(LogLevel::warn,
      "%zu threads of this process drive ranks on %s, which takes the work of %u streams side by side: calls enqueued "
      "ahead may wait for each other until they time out. Set CUDA_DEVICE_MAX_CONNECTIONS (at most 32) before the "
      "process first uses CUDA, or let one thread call for several ranks, in groups",
      drivers.size(), device.name.c_str(), device.queues);
}

// On each host, the first rank creates the segment, even if its own lanes are elsewhere. The segment has room for the
// pairs of all hosts; pages that no rank maps take no memory. Lanes on devices have the same channels and slots then.
Status PeerSet::share_host_memory(const std::vector<Communicator*>& members, Set& set) {
  const LaneBudget budget =
      budget_for(peers_in(set.front().hosts_, set.front().rails_), mapped_page_bytes(), LaneLimit::in_host_memory);
  const std::size_t bytes = set.front().routes_.host_pairs() * budget.bytes;
  std::vector<Segment> memory(set.size());
  const auto share = [&](std::size_t i, bool makes) -> Status {
    if (!makes) {
      File file = TUTTI_TRY(members[i]->take_passed(set[i].host_of_[set[i].self_]));
      memory[i] = TUTTI_TRY(Segment::adopt(std::move(file), bytes));
      return {};
    }
    memory[i] = TUTTI_TRY(Segment::create("tutti-host-lanes", bytes));
    for (Rank peer = 0; peer < members[i]->ranks(); ++peer) {
      if (peer != set[i].self_ && set[i].on_this_host(peer))
        TUTTI_CHECK_OK(members[i]->pass(peer, memory[i].descriptor()));
    }
    return {};
  };
  for (const bool makes : {true, false}) {  // First ranks first: this thread may drive both ends.
    for (std::size_t i = 0; i < set.size(); ++i) {
      if ((set[i].host_of_[set[i].self_] == set[i].self_) != makes) continue;
      Status shared = share(i, makes);
      if (!shared.ok()) return members[i]->fail(std::move(shared));
    }
  }
  for (std::size_t i = 0; i < set.size(); ++i) {
    set[i].budget_ = budget;
    memory[i].close_descriptor();
    Status used =
        set[i].use_host_memory(std::move(memory[i])).during("sharing host memory with GPUs that are not reached");
    if (!used.ok()) return members[i]->fail(std::move(used));
  }
  return {};
}

Status PeerSet::open_remote_lanes(const std::vector<Communicator*>& members, Set& set) {
  const Rank ranks = set.front().ranks();
  std::vector<std::vector<std::uint32_t>> own(set.size(), std::vector<std::uint32_t>(ranks));
  for (std::size_t i = 0; i < set.size(); ++i) {
    for (const Rank peer : members[i]->mesh().remote_ranks()) {
      if (set[i].self_ < peer && !set[i].in_same_domain(peer))
        own[i][peer] = members[i]->mesh().connection(peer).new_context();
    }
  }
  const auto contexts = TUTTI_TRY(gather(members, own));
  for (std::size_t i = 0; i < set.size(); ++i) {
    Status opened = set[i].open_remote_lanes(members[i]->mesh(), contexts[i]).during("opening lanes to other hosts");
    if (!opened.ok()) return members[i]->fail(std::move(opened));
  }
  return agree_on_remote_ll(members, set);
}

// Ranks use LL between hosts if all of them can. Host memory does not hold LL.
Status PeerSet::agree_on_remote_ll(const std::vector<Communicator*>& members, Set& set) {
  if (set.front().budget_.remote_ll_channels == 0) return {};
  std::vector<std::vector<std::uint8_t>> own;
  for (const PeerSet& each : set) own.push_back({each.holds_remote_ll()});
  const auto all = TUTTI_TRY(gather(members, own));
  const auto without = std::ranges::find(all.front(), 0);
  if (without == all.front().end()) return {};
  for (PeerSet& each : set) each.budget_.remote_ll_channels = 0;
  log(LogLevel::info,
      "small calls between hosts use Simple, not LL: rank %td has lanes in memory of the host, or does not use RDMA "
      "verbs",
      without - all.front().begin());
  return {};
}

// All ranks of a host bind their staging rings to one object. If they cannot, rings between hosts only serve requests.
Status PeerSet::bind_multicast(const std::vector<Communicator*>& members, Set& set) {
  std::vector<MulticastMember> own;
  for (std::size_t i = 0; i < set.size(); ++i) {
    RankDeviceMemory& memory = set[i].own_memory();
    own.push_back({members[i], &memory.device(), memory.exported_lanes(), &set[i].hosts_});
  }
  std::vector<BoundMulticast> bound = TUTTI_TRY(bind_to_multicast(own, "sums"));
  for (std::size_t i = 0; i < set.size() && bound[i].object != nullptr; ++i)
    set[i].multicast_ring_ = set[i].own_memory().keep_multicast(std::move(bound[i].object), bound[i].address);
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (set[i].multicast_ring_ != nullptr || !set[i].network() || requests_ring_over_hosts(*members[i])) continue;
    set[i].budget_.ring = {};
    set[i].free_unused_lanes();
    free_when_idle([device = set[i].own_memory().shared_device()] { device->free_kept(); });
  }
  return {};
}

}  // namespace tutti
