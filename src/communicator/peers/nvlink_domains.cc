#include "src/communicator/peers/nvlink_domains.h"

#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "src/base/config.h"
#include "src/base/log.h"
#include "src/communicator/control/mesh.h"
#include "src/communicator/peers/deferred_frees.h"
#include "src/communicator/peers/gather.h"

namespace tutti {
namespace {

constexpr std::size_t kProbeBytes = 4096;

// Result of a step on one rank.
struct ProbeResult {
  DeviceShare share;     // Share of the rank's memory.
  char error[256] = {};  // Empty: the step succeeded.

  void set_error(const Status& status) {
    if (!status.ok()) std::strncpy(error, status.message().c_str(), sizeof error - 1);
  }
};

// Memory of one rank, and that of others that it has opened.
class Probe {
 public:
  explicit Probe(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Probe(Probe&& other) noexcept
      : device_(other.device_),
        memory_(std::exchange(other.memory_, nullptr)),
        opened_(std::exchange(other.opened_, {})) {}
  Probe& operator=(Probe&&) = delete;
  ~Probe() {
    for (std::byte* memory : opened_) device_->close(memory);
    if (memory_ != nullptr) free_when_idle([device = device_, memory = memory_] { device->free(memory); });
  }

  Result<DeviceShare> allocate() {
    memory_ = TUTTI_TRY(device_->allocate_for_domain(kProbeBytes));
    File file;
    return device_->share_of(memory_, kProbeBytes, file);
  }
  Status open(const DeviceShare& share) {
    opened_.push_back(TUTTI_TRY(device_->open(share, File())));
    return {};
  }

 private:
  std::shared_ptr<Device> device_;
  std::byte* memory_ = nullptr;
  std::vector<std::byte*> opened_;
};

// Returns by rank the first rank of the first host of its domain, or of its own host.
std::vector<Rank> joined(const Hosts& hosts, const std::vector<NvlinkDomain>& domains) {
  std::vector<bool> alike(hosts.ranks(), true);  // By first rank of the host.
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    const Rank first = hosts.first_rank_of_host(rank);
    if (domains[rank] != domains[first] || !domains[rank].extends_beyond_host()) alike[first] = false;
  }
  std::map<std::tuple<std::array<std::uint8_t, 16>, std::uint32_t>, Rank> first_of;
  std::vector<Rank> host_of;
  for (Rank rank = 0; rank < hosts.ranks(); ++rank) {
    const Rank first = hosts.first_rank_of_host(rank);
    const NvlinkDomain& domain = domains[rank];
    host_of.push_back(alike[first] ? first_of.try_emplace({domain.cluster, domain.clique}, first).first->second
                                   : first);
  }
  return host_of;
}

bool is_joined(const Hosts& hosts, const std::vector<Rank>& host_of, Rank rank) {
  for (Rank peer = 0; peer < hosts.ranks(); ++peer)
    if (host_of[peer] == host_of[rank] && !hosts.same_host(peer, rank)) return true;
  return false;
}

// Opens the memory of all ranks of other hosts that are joined with the host of `rank`.
Status open_joined(const Hosts& hosts, const std::vector<Rank>& host_of, const std::vector<ProbeResult>& all, Rank rank,
                   Probe& probe) {
  for (Rank peer = 0; peer < all.size(); ++peer) {
    if (host_of[peer] != host_of[rank] || hosts.same_host(peer, rank)) continue;
    TUTTI_CHECK_OK(probe.open(all[peer].share).during("opening memory of rank " + std::to_string(peer)));
  }
  return {};
}

// Warns once per process.
void warn(Rank rank, const char* error) {
  static std::atomic<bool> warned = false;
  if (warned.exchange(true)) return;
  log(LogLevel::warn,
      "hosts of an NVLink domain communicate by the network, because rank %u cannot share memory with the others: %s. "
      "Check that the service nvidia-imex runs on all of these hosts; TUTTI_MNNVL=0 ends this warning",
      rank, error);
}

// Separates the hosts of each domain in which a rank has failed. Returns true if some hosts remain joined.
bool separate_failed(const std::vector<Communicator*>& members, const std::vector<ProbeResult>& all,
                     std::vector<Rank>& host_of) {
  const Hosts& hosts = members.front()->mesh().hosts();
  for (Rank rank = 0; rank < all.size(); ++rank) {
    if (all[rank].error[0] == 0 || !is_joined(hosts, host_of, rank)) continue;
    if (members.front()->rank() == 0) warn(rank, all[rank].error);
    const Rank failed = host_of[rank];
    for (Rank peer = 0; peer < all.size(); ++peer)
      if (host_of[peer] == failed) host_of[peer] = hosts.first_rank_of_host(peer);
  }
  return host_of != hosts.first_ranks();
}

}  // namespace

bool joins_domains() { return config().mnnvl && !config().p2p_disabled && config().p2p_level != P2pLevel::loc; }

Result<Hosts> join_nvlink_domains(const std::vector<Communicator*>& members, const std::shared_ptr<Device>& device,
                                  const std::vector<NvlinkDomain>& domains) {
  const Hosts& hosts = members.front()->mesh().hosts();
  std::vector<Rank> host_of = joined(hosts, domains);
  if (host_of == hosts.first_ranks()) return hosts;
  std::vector<Probe> probes;
  probes.reserve(members.size());
  std::vector<std::vector<ProbeResult>> own(members.size(), std::vector<ProbeResult>(1));
  for (std::size_t i = 0; i < members.size(); ++i) {
    probes.emplace_back(device);
    if (!is_joined(hosts, host_of, members[i]->rank())) continue;
    auto share = probes[i].allocate();
    if (share.ok()) own[i][0].share = share.value();
    own[i][0].set_error(std::move(share).status());
  }
  auto all = TUTTI_TRY(gather(members, own));
  if (!separate_failed(members, all.front(), host_of)) return hosts;
  for (std::size_t i = 0; i < members.size(); ++i)
    own[i][0].set_error(open_joined(hosts, host_of, all[i], members[i]->rank(), probes[i]));
  all = TUTTI_TRY(gather(members, own));
  if (!separate_failed(members, all.front(), host_of)) return hosts;
  Hosts placement = hosts.regrouped(host_of);
  for (const Communicator* member : members) {
    if (member->rank() == 0)
      log(LogLevel::info, "NVLinks connect the GPUs of several hosts: %u hosts count as %u", hosts.count(),
          placement.count());
  }
  return placement;
}

}  // namespace tutti
