// Plans of one rank on a device, proved and connected: compiled programs whose lanes exist. Each is made once and lives
// as long as the communicator. Making it waits for no peer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/communicator/device/plan_chooser.h"
#include "src/communicator/peers/device_lanes.h"
#include "src/communicator/planning/call_planner.h"
#include "src/executor/compiled_plan.h"

namespace tutti {

// Units are cut at multiples of this many bytes: a cache line of a device.
inline constexpr std::uint32_t kPackGranule = 128;
// Capacity of a slot for data, in bytes.
std::uint32_t slot_data(const SlotSizes& slots, Protocol protocol);

// Plan of a rank, one for each rank order that channels use.
struct DevicePlan {
  PlanKey key;
  std::vector<std::vector<LaneSpec>> specs;  // Lanes and flags of each order.
  std::vector<std::unique_ptr<CompiledPlan>> compiled;
  std::uint32_t scratch_units = 0;
  SlotLimits limits;
  bool joins_rounds = false;  // StraightOptions::rounds of all orders, where lanes may lack slots otherwise.
  ReportedRuns runs;
  std::vector<const Program*> programs() const;
};

// Not thread-safe.
class DevicePlans {
 public:
  // All arguments must outlive this object.
  DevicePlans(Rank self, const PeerSet& peers, DevicePlanChooser& chooser, DeviceLanes& lanes)
      : self_(self), peers_(peers), chooser_(chooser), lanes_(lanes) {}

  // Returns the plan, connected for its first use. The pointer stays valid. `choice`: choice with this key.
  Result<const DevicePlan*> connect(const PlanKey& key, const Choice& choice);

 private:
  Status check_tags(const Algorithm& algorithm, const std::vector<Plan>& plans) const;
  // `proof`: loop for which the plans are proved.
  Status add_order(const RankMapping& rank_mapping, const ProvedPlans& proved, const Loop& proof, Protocol protocol,
                   DevicePlan& connected);
  Status compile(const Plan& plan, const std::vector<LaneUse>& uses, Protocol protocol, DevicePlan& connected);

  const Rank self_;
  const PeerSet& peers_;
  DevicePlanChooser& chooser_;
  DeviceLanes& lanes_;
  std::vector<std::unique_ptr<DevicePlan>> plans_;
};

}  // namespace tutti
