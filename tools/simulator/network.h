// A cluster: equal hosts connected by a network of switches. Describes links, and the links on the path of a
// message. Equal hosts share one description, so that 100,000 ranks take little memory.
// Links that are counted as one:
//   nvlink   all NVLinks of a GPU to NVSwitches, each way; NVSwitches of an NVLink domain have no limit of their own
//   network  the ports that a rank uses together, each way; uplinks of a leaf switch, each way, as many side by
//   side as it has hosts, divided by the oversubscription
//   others   as in the topology, each way; on host memory, the memory of a NUMA domain
// Switches above the leaves have no limit of their own. Port i of all hosts of a pod is on one leaf (a rail).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/base/rank.h"
#include "src/model/machine.h"
#include "src/topology/paths.h"
#include "tools/simulator/costs.h"

namespace tutti::simulator {

// A slow or failed port, "host3:mlx5_0", or link, "host3:gpu0-nvswitch1".
struct Fault {
  std::string link;
  double rate = 0;  // Remaining fraction of the rate. A port with 0 has failed: other ports carry its traffic.
};

struct Cluster {
  Topology host;                     // A host, or several hosts that the cluster repeats.
  std::uint32_t hosts = 1;           // Number of hosts of the cluster, a multiple of those in `host`.
  std::uint32_t ranks_per_host = 0;  // 0: one for each GPU.
  // Consecutive hosts in one NVLink domain: NVSwitches join all of their GPUs. 0: as in the topology.
  std::uint32_t hosts_per_nvlink_domain = 0;
  std::uint32_t rails = 0;  // Network ports of a host that are used. 0: all.
  std::uint32_t tiers = 2;  // Tiers of switches between hosts: 1 to 3.
  std::uint32_t hosts_per_leaf = 32;
  bool spread = false;          // A rank sends to other hosts over all ports of its host, one channel per port.
  double oversubscription = 1;  // Rate from hosts to a leaf switch, divided by the rate of its uplinks.
  std::vector<Fault> faults;
};

using ResourceId = std::uint32_t;

// A link that carries one message at a time in one direction, or several parallel links, of which a message uses the
// first free one.
struct Resource {
  LinkKind kind = LinkKind::memory;
  double gbytes_per_s = 0;  // Nominal rate of each link, without faults.
  std::uint32_t parallel = 1;
};

// Path of a message: links of the sender's side, then those of the receiver's side.
struct Route {
  static constexpr std::size_t kMax = 8;  // Maximum links of a side.
  std::array<ResourceId, kMax> out{}, in{};
  std::uint8_t outs = 0, ins = 0;
  std::uint8_t shared =
      0;  // Number of links at the end of `out` that messages of other hosts use, too: those of switches.
  LinkClass links = LinkClass::memory;
  float latency_us = 0;  // Total latency of all links.
};

class Network {
 public:
  // Fails with invalid_argument if the cluster lacks GPUs or a number of ranks, ports between several hosts, or a link
  // that a fault names.
  static Result<Network> make(Cluster cluster);

  Rank ranks() const { return cluster_.hosts * ranks_per_host_; }
  std::uint32_t ranks_per_host() const { return ranks_per_host_; }
  bool is_port(ResourceId id) const;  // False for links between switches.
  // Mean number of ranks of a host that share a network port, or a link that stands for several ports.
  double ranks_per_port() const;
  // Number of hosts in an NVLink domain; 1 if no NVLinks join hosts.
  std::uint32_t hosts_per_nvlink_domain() const { return one_island() ? domain_hosts_ : 1; }
  const Cluster& cluster() const { return cluster_; }
  bool uniform() const { return cluster_.faults.empty(); }

  // Returns the path between two ranks; without links from a rank to itself. Fails if no path connects them.
  Result<Route> route(Rank from, Rank to) const;
  // True if joined NVSwitches connect all ranks.
  bool switched() const;
  bool one_island() const;
  // Path of a rank to the NVSwitches and back, for the rank's own part of multicast data.
  Route through_switches(Rank rank) const;

  ResourceId resources() const;  // Number of links. They are numbered from 0.
  Resource resource(ResourceId id) const;
  std::string name(ResourceId id) const;  // "host3 gpu5 nvlink out", "leaf2 rail0 up".

  // Cost model for predictions, at the rates that links reach, with the faults of the first host's ranks.
  Machine machine(const Costs& costs) const;

 private:
  struct LocalRoute {  // Path within a repetition of the topology; links are indices into its table.
    std::vector<std::uint32_t> links;
    LinkClass kind = LinkClass::memory;
    double latency_us = 0;
    bool exists = false;
  };
  struct LocalLink {
    LinkKind kind = LinkKind::memory;
    double gbytes_per_s = 0;
    std::uint32_t host = 0;  // Host within the repetition.
    std::string name;
  };
  struct Rail {  // Ports of a host that a rank uses together.
    std::vector<NodeId> nics;
    std::uint32_t out = 0, in = 0;  // Links of the ports.
  };
  static constexpr std::uint32_t kNone = ~0U;

  explicit Network(Cluster cluster);
  Status place_ranks();
  Status check_size() const;
  void lay_nvlinks();
  Status join_domains();
  Status lay_rails();
  void lay_routes();
  Status apply(const Fault& fault);
  std::uint32_t joined_rail(std::uint32_t local_host, const std::string& port) const;
  Status slow_port(std::uint32_t host, std::uint32_t rail, const Fault& fault);
  Status fail_rail(std::uint32_t host, std::uint32_t rail, const std::string& link);

  std::uint32_t link(
      const LocalLink& made);  // Returns the number of the link of this host and name; adds it if it is new.
  LocalRoute local_route(NodeId from, NodeId to);
  double rate_to_ports(std::uint32_t host, const Rail& rail) const;
  void leave_own_links(NodeId node, const Rail& rail, std::array<LocalRoute, 2>& routes);
  LinkClass class_of(const NodePath& path) const;
  std::uint32_t nearest_rail(std::uint32_t host, NodeId node) const;

  std::uint32_t repetition_of(Rank rank) const { return rank / unit_ranks_; }
  std::uint32_t host_of(Rank rank) const { return rank / ranks_per_host_; }
  std::uint32_t rail_of(Rank rank) const;
  ResourceId global(std::uint32_t repetition, std::uint32_t local) const {
    return repetition * static_cast<std::uint32_t>(links_.size()) + local;
  }
  ResourceId leaf_link(std::uint32_t leaf, std::uint32_t rail, bool up) const;
  void add(Route& route, bool out, std::uint32_t repetition, const LocalRoute& local) const;
  Route over_nvlinks(Rank from, Rank to) const;
  Result<Route> over_network(Rank from, Rank to) const;
  bool joined_by_nvlinks(Rank from, Rank to) const;

  Cluster cluster_;
  std::uint32_t unit_hosts_ = 1;  // Hosts of cluster_.host.
  std::uint32_t unit_ranks_ = 1;
  std::uint32_t domain_hosts_ = 1;  // Hosts of an NVLink domain, or of cluster_.host.
  std::uint32_t ranks_per_host_ = 0;
  std::uint32_t max_rails_ = 0;
  // Links of one repetition. Ranks are numbered host by host.
  std::vector<LocalLink> links_;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> link_numbers_;
  std::vector<NodeId> nodes_;                          // [rank]
  std::vector<std::array<std::uint32_t, 2>> nvlinks_;  // [rank]: out and in, to NVSwitches, or none.
  std::vector<std::uint32_t> islands_;                 // [rank]: equal for ranks whose NVSwitches are joined.
  std::vector<std::vector<Rail>> rails_;               // [host]
  std::vector<std::uint32_t> rail_of_;                 // [rank]
  std::vector<LocalRoute> within_;                     // [host * ranks_per_host^2 + from * ranks_per_host + to]
  std::vector<std::array<LocalRoute, 2>> to_rail_;     // [rank * max_rails_ + rail]: to the rail, and back.
  std::map<ResourceId, double> slow_;                  // Remaining fraction of slow links.
  std::map<std::string, double>
      port_left_;  // Remaining fraction of "host3:mlx5_0", a port of a rail with several ports.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
      moved_;  // {host, rail}: rail that carries its traffic.
};

}  // namespace tutti::simulator
