// Plans of this rank, verified and connected to lanes. A plan is made once for all calls that it serves, and kept until
// the communicator is destroyed. The choice of the plan for a call is left to CallPlanner (planning/call_planner.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "src/communicator/membership/membership.h"
#include "src/communicator/planning/call_planner.h"
#include "src/executor/compiled_plan.h"
#include "src/executor/cpu/backend.h"
#include "src/plan/algorithm.h"
#include "src/plan/lanes.h"
#include "src/plan/plan.h"
#include "src/plan/rank_mapping.h"

namespace tutti {

// Number of slots of each lane for large messages, and the maximum skew of a loop.
inline constexpr std::uint32_t kSimpleSlots = 4;

struct ConnectedPlan {
  PlanKey key;
  Plan plan;  // This rank's plan after fusing.
  std::vector<LaneUse> uses;
  std::vector<LaneSpec> specs;             // By index in `uses`.
  std::vector<LaneSpec> awaited;           // Lanes and flags whose address has not arrived yet.
  std::unique_ptr<CompiledPlan> compiled;  // Set once `awaited` is empty.
  BackendMemory memory;
  ReportedRuns runs;  // Reported by last_run().
  SlotLimits limits;
};

class ConnectedPlans {
 public:
  explicit ConnectedPlans(Membership& membership);

  // Returns the plan of this key. The first request makes and verifies it, and offers its lanes to the peers. Does not
  // wait. The plan does not move.
  Result<ConnectedPlan*> plan(const PlanKey& key);
  // Returns the rank whose address the plan still needs; nullopt: the plan is compiled. Does not wait.
  Result<std::optional<Rank>> awaited_by(ConnectedPlan& connected);

  // Returns the mapping with NUMA domains if the named algorithm supports it, otherwise the mapping with hosts.
  const RankMapping& rank_mapping_for(const Problem& flat, std::string_view named) const;

 private:
  Status connect_lanes(const std::vector<Plan>& plans, ConnectedPlan& connected);
  void compile(ConnectedPlan& connected);

  Membership& membership_;
  const RankMapping rank_mapping_;
  const RankMapping by_domains_;  // Hosts and their NUMA domains; empty if no host has several domains.
  std::vector<std::unique_ptr<ConnectedPlan>> plans_;
};

}  // namespace tutti
