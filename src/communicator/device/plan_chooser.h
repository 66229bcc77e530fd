// The choices that calls on devices have: hosts, protocols, channels and rank orders. They depend only on data that all
// ranks share, so all ranks choose alike without asking each other.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "src/communicator/autotuning/device_autotuning.h"
#include "src/communicator/device/windows.h"
#include "src/communicator/peers/peer_set.h"
#include "src/communicator/planning/planning.h"
#include "src/communicator/planning/rings.h"

namespace tutti {

// Not thread-safe. All functions return the same on all ranks.
class DevicePlanChooser {
 public:
  // `peers` and `windows` must outlive this object.
  DevicePlanChooser(const PeerSet& peers, const DeviceWindows& windows);

  // Returns the tuner's query. `call` and `options` must outlive it.
  Result<Query> query_for(const Call& call, const CommunicatorOptions& options);
  // Returns why copy engines cannot run a call that requests them; "": they do.
  std::string_view against_copy_engines(const Call& call, const CommunicatorOptions& options) const;
  // Returns the candidates of a call that autotuning may try. The first is the tuner's choice. The others have enough
  // lanes and need little scratch memory beyond that of the first. Empty if there is no candidate, or if the tuner
  // chooses compression: measurements do not decide about it.
  Result<std::vector<Candidate>> candidates_to_tune(const Query& query);

  // Returns the rank orders that the channels of the algorithm use in turn; at least one.
  std::span<const RankMapping> rank_orders_of(const Algorithm& algorithm, const Problem& problem) const;
  // Returns true if plans of the algorithm use the order of `rank_mapping` for this problem.
  static bool reorders(std::string_view algorithm, const RankMapping& rank_mapping, const Problem& problem);
  // Slots of the plans of the algorithm. All its lanes have such slots, or larger ones.
  SlotSizes slots_of(const Algorithm& algorithm, const Problem& problem);
  bool only_rings() const { return rings_.only_rings; }  // See Query::only_rings.

 private:
  const RankMapping& rank_mapping_for(const Problem& problem) const;
  Result<Query> query_of(const Call& call, const Problem& problem, const CommunicatorOptions& options) const;
  Result<std::string_view> protocol_of(const CommunicatorOptions& options, CompressionFormat compression) const;
  // Returns the protocol that `options` force, for uncompressed messages that do not go through host memory.
  Result<std::string_view> protocol_on_devices(const CommunicatorOptions& options) const;
  bool lanes_fit(const Algorithm& algorithm, const Problem& problem) { return fit_of(algorithm, problem).fits; }
  // Returns Query::on_rails.
  std::vector<std::pair<const Algorithm*, RemotePeers>> algorithms_on_rails(const Query& query);

  const PeerSet& peers_;
  const DeviceWindows& windows_;
  const RankMapping rank_mapping_, by_rails_;
  const RingOrders rings_;
  const Machine machine_;
  // Whether lanes between ranks suffice for an algorithm that uses the hosts.
  struct Fit {
    const Algorithm* algorithm;
    Problem problem;
    bool fits;
    RemotePeers remote_peers;
  };
  const Fit& fit_of(const Algorithm& algorithm, const Problem& problem);
  std::vector<Fit> fits_;
};

// Creates autotuning for a communicator, and publishes results of earlier runs as publish_saved() does. Returns null if
// autotuning is off. It needs the board, which ranks of other hosts do not see.
std::unique_ptr<DeviceAutotuning> make_autotuning(const Communicator& control, const PeerSet& peers,
                                                  const DevicePlanChooser& chooser);

}  // namespace tutti
