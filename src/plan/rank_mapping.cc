#include "src/plan/rank_mapping.h"

#include <algorithm>
#include <map>

namespace tutti {
namespace {

// New positions of ranks and of the blocks that belong to them.
struct Move {
  const std::vector<Rank>& order;
  std::uint32_t units = 1;                           // Per block.
  bool input_blocks = false, output_blocks = false;  // Blocks belong to ranks.
};

Operand moved(Operand operand, const Move& move) {
  const bool blocks =
      (operand.space == Space::input && move.input_blocks) || (operand.space == Space::output && move.output_blocks);
  if (blocks && operand.count > 0) {
    const Rank block = operand.first / move.units;
    TUTTI_ASSERT(operand.unit(operand.count - 1) / move.units == block);
    operand.first = move.order[block] * move.units + operand.first % move.units;
  }
  if (!operand.is_of_several()) operand.peer = move.order[operand.peer];
  operand.reserved = 1;  // The peer is set explicitly.
  return operand;
}

Plan moved(const Plan& plan, const Move& move) {
  Plan made = plan;
  made.steps = Steps(move.order[plan.steps.self()]);
  std::vector<Operand> sources, targets;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step step = plan.steps[i];
    sources.clear();
    targets.clear();
    for (const Operand& operand : step.sources) sources.push_back(moved(operand, move));
    for (const Operand& operand : step.targets) targets.push_back(moved(operand, move));
    made.steps.add(sources, targets, step.fold);
  }
  return made;
}

// Returns groups of ranks with the same number, ordered by the first rank of each.
std::vector<std::vector<Rank>> groups_by(std::span<const Rank> number_of) {
  std::vector<std::vector<Rank>> groups;
  std::map<Rank, std::size_t> index_of;
  for (Rank rank = 0; rank < number_of.size(); ++rank) {
    const auto [known, is_new] = index_of.try_emplace(number_of[rank], groups.size());
    if (is_new) groups.emplace_back();
    groups[known->second].push_back(rank);
  }
  return groups;
}

}  // namespace

RankMapping rank_mapping_of(std::span<const Rank> host_of) {
  const std::vector<std::vector<Rank>> hosts = groups_by(host_of);
  RankMapping rank_mapping;
  if (hosts.size() < 2 || hosts.size() == host_of.size()) return rank_mapping;
  rank_mapping.groups.emplace_back();
  for (const std::vector<Rank>& host : hosts) {
    rank_mapping.groups[0].push_back(static_cast<Rank>(host.size()));
    rank_mapping.order.insert(rank_mapping.order.end(), host.begin(), host.end());
  }
  if (std::is_sorted(rank_mapping.order.begin(), rank_mapping.order.end())) rank_mapping.order.clear();
  return rank_mapping;
}

RankMapping rank_mapping_of(std::span<const Rank> host_of, std::span<const Rank> part_of) {
  const std::vector<std::vector<Rank>> hosts = groups_by(host_of);
  RankMapping rank_mapping;
  std::vector<Rank> parts_of_hosts;
  rank_mapping.groups.emplace_back();
  for (const std::vector<Rank>& host : hosts) {
    std::vector<Rank> parts_here;
    for (const Rank rank : host) parts_here.push_back(part_of[rank]);
    const std::vector<std::vector<Rank>> parts = groups_by(parts_here);
    parts_of_hosts.push_back(static_cast<Rank>(parts.size()));
    for (const std::vector<Rank>& part : parts) {
      rank_mapping.groups[0].push_back(static_cast<Rank>(part.size()));
      for (const Rank member : part) rank_mapping.order.push_back(host[member]);
    }
  }
  const std::size_t parts = rank_mapping.groups[0].size();
  if (parts == hosts.size() || parts == host_of.size()) return {};
  if (hosts.size() > 1) rank_mapping.groups.push_back(std::move(parts_of_hosts));
  if (std::is_sorted(rank_mapping.order.begin(), rank_mapping.order.end())) rank_mapping.order.clear();
  return rank_mapping;
}

bool applies(const RankMapping& rank_mapping, const Problem& problem) {
  const Collective collective = problem.collective;
  return rank_mapping.order.empty() || collective == Collective::all_reduce || collective == Collective::broadcast ||
         collective == Collective::reduce;
}

Problem logical(const RankMapping& rank_mapping, const Problem& problem) {
  Problem made = problem;
  if (rank_mapping.order.empty() || !applies(rank_mapping, problem) || !has_root(problem.collective)) return made;
  const auto root = std::find(rank_mapping.order.begin(), rank_mapping.order.end(), problem.root);
  made.root = static_cast<Rank>(root - rank_mapping.order.begin());
  return made;
}

std::vector<Plan> map_ranks(const RankMapping& rank_mapping, const Problem& problem, std::vector<Plan> plans) {
  if (rank_mapping.order.empty() || !applies(rank_mapping, problem)) return plans;
  std::vector<Plan> made = plans;
  for (Rank rank = 0; rank < plans.size(); ++rank) {
    made[rank_mapping.order[rank]] = moved(plans[rank], {.order = rank_mapping.order});
    made[rank_mapping.order[rank]].problem = problem;
  }
  return made;
}

Plan mapped_plan(const RankMapping& rank_mapping, const Problem& problem, const Plan& plan) {
  if (rank_mapping.order.empty()) return plan;
  Plan made = moved(plan, {.order = rank_mapping.order,
                           .units = plan.shape.units,
                           .input_blocks = input_blocks(problem, problem.root) > 1,
                           .output_blocks = output_blocks(problem, problem.root) > 1});
  made.problem = problem;
  return made;
}

}  // namespace tutti
