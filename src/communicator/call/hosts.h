// Placement of a communicator's ranks: the ranks of each host, their location in it, and the topology of hosts, if
// known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/rank.h"
#include "src/base/status.h"
#include "src/bootstrap/location.h"
#include "src/bootstrap/unique_id.h"
#include "src/topology/merged.h"

namespace tutti {

// Network performance between hosts, measured when ranks joined.
struct NetworkFigures {
  double message_us = 0;         // One-way time of a small message, including the overhead of both ends.
  double rank_gbytes_per_s = 0;  // Send rate of one rank that also receives at this rate.
  double host_gbytes_per_s = 0;  // Send rate of all ranks of a host together.
  double took_us = 0;            // Duration of the measurement.
};

class Hosts {
 public:
  Hosts() = default;
  // host_of[rank]: a number that is unique to the rank's host.
  explicit Hosts(std::span<const Rank> host_of) {
    std::map<Rank, Rank> first;
    for (const Rank host : host_of)
      first_ranks_.push_back(first.try_emplace(host, static_cast<Rank>(first_ranks_.size())).first->second);
    locations_.resize(first_ranks_.size());
    for (Rank rank = 0; rank < first_ranks_.size(); ++rank) {
      if (first_ranks_[rank] == rank) first[host_of[rank]] = hosts_++;
      host_numbers_.push_back(first[host_of[rank]]);
    }
  }
  // Sets the location of each rank; one entry per rank.
  void place(std::vector<Location> locations) {
    TUTTI_ASSERT(locations.size() == first_ranks_.size());
    locations_ = std::move(locations);
  }
  // Sets the topology. Its hosts must be in the order of their first ranks.
  void set_topology(std::shared_ptr<const MergedTopology> topology) {
    TUTTI_ASSERT(topology->hosts() == hosts_);
    topology_ = std::move(topology);
  }
  // Sets the id of the communicator: equal on all its ranks, and different from other communicators with high
  // probability. `secret`: known to its ranks only; sub-communicators inherit it.
  void set_id(std::uint64_t id, const Secret& secret) {
    id_ = id;
    secret_ = secret;
  }
  std::uint64_t id() const { return id_; }
  const Secret& secret() const { return secret_; }
  void set_network(const std::optional<NetworkFigures>& network) { network_ = network; }
  // Empty if not measured.
  const std::optional<NetworkFigures>& network() const { return network_; }
  // Sets the transport between hosts, such as "tcp".
  void set_transport(std::string transport) { transport_ = std::move(transport); }
  const std::string& transport() const { return transport_; }
  // Sets the address at which this rank accepts connections from other hosts. Its port is unused.
  void set_own_address(const Address& address) { own_address_ = address; }
  const std::optional<Address>& own_address() const { return own_address_; }
  // The machine whose CPUs a rank shares. One machine may emulate several hosts.
  struct MachineShare {
    Rank machine = 0;        // A number that is unique to ranks of this machine.
    std::uint32_t cpus = 0;  // CPUs of the whole machine.
    // Number of ranks known to share the machine, including this one. Includes ranks of the parent communicator, which
    // may be active too.
    std::uint32_t ranks = 0;
    // Affinity, if reported: the number of CPUs that the rank may use, and the first of them. `sharers` counts the
    // ranks with exactly these CPUs, including this one.
    std::uint32_t own_cpus = 0, first_cpu = 0, sharers = 0;
  };
  Hosts(std::span<const Rank> host_of, std::vector<MachineShare> shares) : Hosts(host_of) {
    machine_shares_ = std::move(shares);
    std::map<Rank, std::uint32_t> ranks;                                              // By machine.
    std::map<std::tuple<Rank, std::uint32_t, std::uint32_t>, std::uint32_t> sharers;  // By machine and CPUs.
    for (const MachineShare& share : machine_shares_) {
      ++ranks[share.machine];
      ++sharers[{share.machine, share.first_cpu, share.own_cpus}];
    }
    for (MachineShare& share : machine_shares_) {
      share.ranks = std::max(share.ranks, ranks[share.machine]);
      share.sharers = std::max(share.sharers, sharers[{share.machine, share.first_cpu, share.own_cpus}]);
    }
  }
  // Empty if not reported.
  const std::vector<MachineShare>& machine_shares() const { return machine_shares_; }

  static Hosts one_host(Rank ranks) { return Hosts(std::vector<Rank>(ranks, 0)); }
  static Hosts one_rank_per_host(Rank ranks) {
    std::vector<Rank> host_of(ranks);
    for (Rank rank = 0; rank < ranks; ++rank) host_of[rank] = rank;
    return Hosts(host_of);
  }

  Rank ranks() const { return static_cast<Rank>(first_ranks_.size()); }
  // Returns the lowest rank of the rank's host.
  Rank first_rank_of_host(Rank rank) const { return first_ranks_[rank]; }
  const std::vector<Rank>& first_ranks() const { return first_ranks_; }
  bool same_host(Rank a, Rank b) const { return first_ranks_[a] == first_ranks_[b]; }
  const Location& location(Rank rank) const { return locations_[rank]; }
  const std::vector<Location>& locations() const { return locations_; }
  // Returns the instructions that all reporting ranks support; nullopt if no rank has reported.
  std::optional<Instructions> common_instructions() const {
    std::optional<Instructions> common;
    for (const Location& location : locations_) {
      if (location.instructions == 0) continue;
      const auto own = static_cast<Instructions>(location.instructions - 1);
      common = std::min(own, common.value_or(own));
    }
    return common;
  }
  // Returns the topology; null if it was not requested. host_number() returns the rank's host in it.
  const MergedTopology* topology() const { return topology_.get(); }
  std::uint32_t host_number(Rank rank) const { return host_numbers_[rank]; }
  // Returns for each rank a number that is unique to its host and NUMA domain. If a rank of the host has no domain, the
  // number is unique to the host only.
  std::vector<Rank> domains() const;
  // Returns the placement of a communicator of `members`, in this order. `number` distinguishes communicators of the
  // same ranks.
  Hosts of(const std::vector<Rank>& members, std::uint64_t number = 0) const {
    std::vector<Rank> host_of;
    std::vector<MachineShare> shares;
    for (const Rank member : members) {
      host_of.push_back(first_ranks_[member]);
      if (!machine_shares_.empty()) shares.push_back(machine_shares_[member]);
    }
    Hosts part(host_of, std::move(shares));
    for (Rank rank = 0; rank < members.size(); ++rank) {
      part.locations_[rank] = locations_[members[rank]];
      part.host_numbers_[rank] = host_numbers_[members[rank]];
    }
    part.topology_ = topology_;
    part.network_ = network_;
    part.transport_ = transport_;
    part.own_address_ = own_address_;
    part.secret_ = secret_;
    part.id_ = splitmix64(id_ + number);
    for (const Rank member : members) part.id_ = splitmix64(part.id_ + member);
    return part;
  }
  // Returns the placement of the same ranks with some hosts joined. host_of[rank]: a number that is unique to the
  // rank's new host. host_number() and topology() are unchanged.
  Hosts regrouped(std::span<const Rank> host_of) const {
    const Hosts other(host_of);
    Hosts grouped = *this;
    grouped.first_ranks_ = other.first_ranks_;
    grouped.hosts_ = other.hosts_;
    grouped.joined_ = other.hosts_ != hosts_;
    return grouped;
  }
  // True if some hosts are joined: several hosts of the topology count as one.
  bool joined() const { return joined_; }
  std::uint32_t count() const { return hosts_; }
  bool is_one_host() const { return hosts_ < 2; }
  // Returns the ranks per CPU of the most oversubscribed machine; 1 if each rank has a CPU, or if not reported.
  double ranks_per_cpu() const {
    double max = 1;
    for (const MachineShare& share : machine_shares_)
      max = std::max(max, static_cast<double>(share.ranks) / share.cpus);
    return max;
  }
  // Returns whether one machine emulates all hosts, so that there are no links between hosts.
  bool one_machine() const {
    const auto is_first = [&](const MachineShare& share) { return share.machine == machine_shares_[0].machine; };
    return !machine_shares_.empty() && std::all_of(machine_shares_.begin(), machine_shares_.end(), is_first);
  }

 private:
  // splitmix64 by S. Vigna.
  static std::uint64_t splitmix64(std::uint64_t word) {
    word += 0x9e3779b97f4a7c15ULL;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ULL;
    word = (word ^ word >> 27) * 0x94d049bb133111ebULL;
    return word ^ word >> 31;
  }

  std::uint64_t id_ = 0;
  Secret secret_{};
  std::vector<Rank> first_ranks_;
  std::vector<MachineShare> machine_shares_;  // Empty if not reported.
  std::uint32_t hosts_ = 0;
  bool joined_ = false;
  std::vector<std::uint32_t> host_numbers_;  // Indices in topology_, which sub-communicators share unchanged.
  std::vector<Location> locations_;
  std::shared_ptr<const MergedTopology> topology_;
  std::optional<NetworkFigures> network_;
  std::string transport_ = "tcp";
  std::optional<Address> own_address_;  // Empty if one process emulates all hosts.
};

inline std::vector<Rank> Hosts::domains() const {
  std::map<Rank, bool> known;  // By first rank of the host: whether all ranks of the host have a domain.
  for (Rank rank = 0; rank < ranks(); ++rank) {
    const bool here = locations_[rank].domain != kNoDomain;
    known[first_ranks_[rank]] = known.try_emplace(first_ranks_[rank], true).first->second && here;
  }
  std::map<std::pair<Rank, std::uint32_t>, Rank> first;
  std::vector<Rank> domains;
  for (Rank rank = 0; rank < ranks(); ++rank) {
    const std::uint32_t domain = known[first_ranks_[rank]] ? locations_[rank].domain : 0;
    domains.push_back(first.try_emplace({first_ranks_[rank], domain}, rank).first->second);
  }
  return domains;
}

}  // namespace tutti
