// Setup of peers on devices. Ranks gather their locations, then their resources for others, then reachability.
#include <sys/random.h>
#include <unistd.h>

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
#include "src/communicator/peers/peer_set.h"
#include "src/tuner/choose_over_hosts.h"

namespace tutti {
namespace {

// Number of this process, different from that of its parent before a fork.
std::uint64_t number_of_process() {
  static const std::uint64_t number = [] {
    std::uint64_t random = 0;
    // Not std::random_device, which needs glibc 2.36. Joining has failed before if the system has no random numbers.
    (void)!::getrandom(&random, sizeof random, 0);
    return random;
  }();
  return number + static_cast<std::uint64_t>(::getpid());
}

bool requests_ring_over_hosts(const Communicator& member) { return is_staged_over_hosts(member.options().algorithm); }

// True if multicast objects can serve a plan: hosts have equally many ranks, and more than one. Several hosts, only if
// the tuner may choose the plan, or the communicator requests it.
bool suits_multicast(const Hosts& hosts, const Communicator& member) {
  std::map<Rank, Rank> ranks_of;  // By first rank of the host.
  for (const Rank first : hosts.first_ranks()) ++ranks_of[first];
  const Rank size = ranks_of.begin()->second;
  const bool chosen = ranks_of.size() == 1 || (size >= kMinSwitchRanks && ranks_of.size() <= kMaxHostsOnRails);
  return size > 1 && (chosen || requests_ring_over_hosts(member)) &&
         std::all_of(ranks_of.begin(), ranks_of.end(), [=](const auto& host) { return host.second == size; });
}

P2pLevel farthest_p2p() { return config().p2p_disabled ? P2pLevel::loc : config().p2p_level; }

}  // namespace

// Information that a rank sends to its peers.
struct PeerSet::PeerInfo {
  std::uint64_t process = 0;  // Random number of the process, which ranks with common memory share.
  std::uint64_t memory = 0;   // Number of its RankDeviceMemory in the process.
  DeviceIdentity device = {};
  std::uint32_t thread_blocks = 0;
  std::uint32_t failed = 0;                                // 1: no memory for its exported lanes.
  DeviceShare exported;                                    // Its exported lanes.
  ComputeSharing sharing = ComputeSharing::all_processes;  // How its device is shared.
  Rank driver = 0;                                         // First of the ranks that its thread drives.
  LaneLimit lanes = LaneLimit::large;                      // small: see LaneLimit.
  std::uint32_t multicast = 0;                             // 1: it wants multicast objects, which its device has.

  bool is_here() const { return process == number_of_process(); }
  // True if the two ranks use their device in time slices.
  bool alternates_with(const PeerInfo& other) const {
    if (device != other.device) return false;
    return sharing == ComputeSharing::none || (sharing == ComputeSharing::one_process && process != other.process);
  }
};

Result<std::vector<PeerSet>> PeerSet::connect(const std::vector<Communicator*>& members,
                                              const std::shared_ptr<Device>& device) {
  static_assert(sizeof(PeerInfo) == 136);
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

PeerSet::PeerInfo PeerSet::describe_self(bool wants_large_lanes) {
  PeerInfo info;
  info.process = number_of_process();
  info.memory = RankDeviceMemory::publish(shared_own_memory());
  info.device = own_memory().device().traits().identity;
  if (!wants_large_lanes && RankDeviceMemory::has_large_lanes(info.device)) info.lanes = LaneLimit::small;
  info.thread_blocks = own_memory().device().traits().thread_blocks;
  info.sharing = own_memory().device().traits().sharing;
  info.multicast = config().nvls && own_memory().device().traits().multicast ? 1 : 0;
  return info;
}

// All ranks get the same results, but `members` may be only some of the ranks.
Status PeerSet::exchange_peer_infos(const std::vector<Communicator*>& members, Set& set, std::vector<PeerInfos>& all) {
  const LanePeers peers = peers_in(set.front().hosts_, set.front().rails_);
  const std::uint32_t few = budget_for(peers, mapped_page_bytes(), LaneLimit::small).channels;
  std::vector<PeerInfos> own;
  for (std::size_t i = 0; i < set.size(); ++i) {
    own.push_back({set[i].describe_self(members[i]->options().min_channels > few)});
    own.back()[0].driver = set.front().self_;
    if (!suits_multicast(set[i].hosts_, *members[i])) own.back()[0].multicast = 0;
  }
  all = TUTTI_TRY(gather(members, own));
  const PeerInfos& infos = all.front();
  const bool further =
      std::any_of(infos.begin(), infos.end(), [](const PeerInfo& info) { return info.lanes == LaneLimit::small; });
  LaneBudget budget = budget_for(peers, mapped_page_bytes(), further ? LaneLimit::small : LaneLimit::large);
  const bool one_host = members.front()->on_one_host();
  std::set<DeviceIdentity> devices;
  for (const PeerInfo& info : infos)
    if (info.multicast != 0) devices.insert(info.device);
  for (PeerSet& each : set) each.wants_multicast_ = devices.size() == infos.size();
  if (!one_host && !set.front().wants_multicast_) budget.ring = {};
  if (one_host && std::all_of(infos.begin(), infos.end(), [](const PeerInfo& info) { return info.is_here(); })) {
    for (PeerSet& each : set) {
      if (further) each.budget_ = {.slots = budget.slots, .channels = budget.channels};
      each.budget_.ring = budget.ring;
      File file;  // No other process opens the ring.
      // Without this memory, the object for multicast will lack a device.
      if (each.wants_multicast_) (void)each.own_memory().allocate_exported_lanes(0, file, budget.ring.bytes());
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
    const auto share = set[i].own_memory().allocate_exported_lanes(bytes, files[i], budget.ring.bytes());
    if (!exports) continue;  // Without this memory, the object for multicast will lack a device.
    own[i][0].failed = share.ok() ? 0 : 1;
    if (share.ok()) own[i][0].exported = share.value();
  }
  all = TUTTI_TRY(gather(members, own));
  return pass_files(members, set, all, files);
}

void PeerSet::find_other_processes(const PeerInfos& infos) {
  for (Rank peer = 0; peer < ranks(); ++peer) {
    if (is_on_this_host(peer) && !infos[peer].is_here()) other_processes_.push_back(peer);
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
    const bool reached = info.is_here() && is_on_this_host(peer);
    if (reached && peer != self_) memories_[peer] = RankDeviceMemory::find(info.memory);
    if (reached && memories_[peer] == nullptr)
      return remote_error("rank " + std::to_string(peer) + " left while the ranks connected their devices");
    if (info.failed != 0)
      return remote_error("rank " + std::to_string(peer) + " has no memory for lanes on its device");
    shares_device_ = shares_device_ || (peer != self_ && info.device == infos[self_].device);
    if (process_group_id_ == 0 && info.is_here()) process_group_id_ = info.memory;
    time_sliced_ = time_sliced_ || std::any_of(infos.begin(), infos.end(), [&](const PeerInfo& other) {
                     return &other != &info && info.alternates_with(other);
                   });
    const auto sharers =
        std::count_if(infos.begin(), infos.end(), [&](const PeerInfo& other) { return other.device == info.device; });
    thread_blocks_ = std::min(thread_blocks_, info.thread_blocks / static_cast<std::uint32_t>(sharers));
    const auto ranks_here =
        std::count_if(infos.begin(), infos.end(), [&](const PeerInfo& other) { return other.process == info.process; });
    own_process_ = own_process_ && ranks_here == 1;
    one_device_ = one_device_ && is_on_this_host(peer) && info.process == infos.front().process &&
                  info.device == infos.front().device;
  }
  if (thread_blocks_ == 0)
    return unsupported("too many ranks share a GPU: their thread blocks cannot run at the same time");
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

// Determines placements. No exchange is needed if all ranks are on one device of one process.
Status PeerSet::find_routes(const std::vector<Communicator*>& members, Set& set, const std::vector<PeerInfos>& all) {
  std::vector<Routes> own;
  for (std::size_t i = 0; i < set.size(); ++i) {
    auto routes = set[i].try_routes(all[i]);
    if (!routes.ok()) return members[i]->fail(std::move(routes).status());
    own.push_back(std::move(routes).value());
  }
  const Rank ranks = set.front().ranks();
  std::vector<Routes> tables(set.size(), Routes(std::size_t{ranks} * ranks));
  if (!set.front().one_device_) tables = TUTTI_TRY(gather(members, own));
  for (std::size_t i = 0; i < set.size(); ++i) {
    Status possible = set[i].check_routes(tables[i], all[i]);
    if (!possible.ok()) return members[i]->fail(std::move(possible));
    set[i].files_.clear();
    set[i].apply_routes(tables[i]);
  }
  return {};
}

// Checks that the placements that other ranks report are possible.
Status PeerSet::check_routes(const Routes& table, const PeerInfos& infos) const {
  const std::size_t ranks = infos.size();
  for (std::size_t pair = 0; pair < table.size(); ++pair) {
    const auto writer = static_cast<Rank>(pair / ranks), reader = static_cast<Rank>(pair % ranks);
    const bool near = hosts_.same_host(writer, reader);
    const bool together = infos[writer].process == infos[reader].process;
    const LanePlacement placement = table[pair].placement;
    if (near ? placement == LanePlacement::host ||
                   placement == (together ? LanePlacement::same_process : LanePlacement::ipc)
             : placement == LanePlacement::network)
      continue;
    return invalid_usage("rank " + std::to_string(pair / ranks) + " reported an impossible path to rank " +
                         std::to_string(pair % ranks) + ": it uses another version of the library");
  }
  return {};
}

Result<PeerSet::Routes> PeerSet::try_routes(const PeerInfos& infos) {
  Routes routes(ranks());
  std::vector<std::string> how(ranks());
  for (Rank peer = 0; peer < ranks(); ++peer) {
    how[peer] = "another host";
    if (!is_on_this_host(peer)) routes[peer] = {LanePlacement::network, 1};
    if (peer != self_ && is_on_this_host(peer)) routes[peer] = TUTTI_TRY(try_route(infos[peer], peer, how[peer]));
  }
  if (logs(LogLevel::info) && ranks() > 1) {
    const LogDevice named(static_cast<int>(own_memory().device().traits().ordinal));
    log(LogLevel::info, "rank %u on %s, lanes %s", self_, own_memory().device().traits().name.c_str(),
        describe_routes(how, self_).c_str());
  }
  return routes;
}

// Opens the peer's memory. If this fails, the lanes are in host memory.
Result<PeerSet::Route> PeerSet::try_route(const PeerInfo& info, Rank peer, std::string& how) {
  Device& device = own_memory().device();
  const bool same = info.device == device.traits().identity;
  const DeviceDistance distance =
      same ? DeviceDistance{.level = P2pLevel::loc, .known = true} : device.distance_to(info.device);
  how = describe(distance);
  if (!same && !p2p_wanted(distance, farthest_p2p())) {
    how = "host memory (" + how + ", is farther than TUTTI_P2P_LEVEL)";
    return Route{LanePlacement::host, 0};
  }
  const std::uint8_t whole = distance.known && distance.level <= P2pLevel::nvl ? 1 : 0;
  Status reached;
  if (info.is_here()) {
    reached = device.enable_peer_access(memory_of(peer).device());
    if (reached.ok()) return Route{LanePlacement::same_process, whole};
  } else {
    auto opened = device.open(info.exported, files_[peer]);
    if (opened.ok()) {
      opened_[peer] = opened.value();
      return Route{LanePlacement::ipc, whole};
    }
    reached = std::move(opened).status();
  }
  how = "host memory (" + reached.message() + ")";
  return Route{LanePlacement::host, 0};
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
      File file = TUTTI_TRY(members[i]->take_passed(set[i].hosts_.first_rank_of_host(set[i].self_)));
      memory[i] = TUTTI_TRY(Segment::adopt(std::move(file), bytes));
      return {};
    }
    memory[i] = TUTTI_TRY(Segment::create("tutti-host-lanes", bytes));
    for (Rank peer = 0; peer < members[i]->ranks(); ++peer) {
      if (peer != set[i].self_ && set[i].is_on_this_host(peer))
        TUTTI_CHECK_OK(members[i]->pass(peer, memory[i].descriptor()));
    }
    return {};
  };
  for (const bool makes : {true, false}) {  // First ranks first: this thread may drive both ends.
    for (std::size_t i = 0; i < set.size(); ++i) {
      if ((set[i].hosts_.first_rank_of_host(set[i].self_) == set[i].self_) != makes) continue;
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
      if (set[i].self_ < peer) own[i][peer] = members[i]->mesh().connection(peer).new_context();
    }
  }
  const auto contexts = TUTTI_TRY(gather(members, own));
  for (std::size_t i = 0; i < set.size(); ++i) {
    Status opened = set[i].open_remote_lanes(members[i]->mesh(), contexts[i]).during("opening lanes to other hosts");
    if (!opened.ok()) return members[i]->fail(std::move(opened));
  }
  return {};
}

// All ranks of a host bind their staging rings to one object. If they cannot, rings between hosts only serve requests.
Status PeerSet::bind_multicast(const std::vector<Communicator*>& members, Set& set) {
  std::vector<MulticastMember> own;
  for (std::size_t i = 0; i < set.size(); ++i) {
    RankDeviceMemory& memory = set[i].own_memory();
    own.push_back({members[i], &memory.device(), memory.exported_lanes()});
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
