#include "src/plan/embedding.h"

#include <algorithm>
#include <map>

namespace tutti {
namespace {

Operand moved(Operand operand, const std::vector<Rank>& order) {
  operand.peer = order[operand.peer];
  operand.reserved = 1;  // Its peer is set on purpose.
  return operand;
}

Plan moved(const Plan& plan, const std::vector<Rank>& order) {
  Plan made = plan;
  made.steps = Steps(order[plan.steps.self()]);
  std::vector<Operand> sources, targets;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step step = plan.steps[i];
    sources.clear();
    targets.clear();
    for (const Operand& operand : step.sources) sources.push_back(moved(operand, order));
    for (const Operand& operand : step.targets) targets.push_back(moved(operand, order));
    made.steps.add(sources, targets, step.fold);
  }
  return made;
}

}  // namespace

Embedding embedding_of(std::span<const Rank> host_of) {
  std::vector<std::vector<Rank>> hosts;  // By their first rank.
  std::map<Rank, std::size_t> numbers;
  for (Rank rank = 0; rank < host_of.size(); ++rank) {
    const auto [known, is_new] = numbers.try_emplace(host_of[rank], hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[known->second].push_back(rank);
  }
  Embedding embedding;
  if (hosts.size() < 2 || hosts.size() == host_of.size()) return embedding;
  embedding.groups.emplace_back();
  for (const std::vector<Rank>& host : hosts) {
    embedding.groups[0].push_back(static_cast<Rank>(host.size()));
    embedding.order.insert(embedding.order.end(), host.begin(), host.end());
  }
  if (std::is_sorted(embedding.order.begin(), embedding.order.end())) embedding.order.clear();
  return embedding;
}

bool embeds(const Embedding& embedding, const Problem& problem) {
  const Collective collective = problem.collective;
  return embedding.order.empty() || collective == Collective::all_reduce || collective == Collective::broadcast ||
         collective == Collective::reduce;
}

Problem logical(const Embedding& embedding, const Problem& problem) {
  Problem made = problem;
  if (embedding.order.empty() || !embeds(embedding, problem) || !has_root(problem.collective)) return made;
  const auto root = std::find(embedding.order.begin(), embedding.order.end(), problem.root);
  made.root = static_cast<Rank>(root - embedding.order.begin());
  return made;
}

std::vector<Plan> embed(const Embedding& embedding, const Problem& problem, std::vector<Plan> plans) {
  if (embedding.order.empty() || !embeds(embedding, problem)) return plans;
  std::vector<Plan> made = plans;
  for (Rank rank = 0; rank < plans.size(); ++rank) {
    made[embedding.order[rank]] = moved(plans[rank], embedding.order);
    made[embedding.order[rank]].problem = problem;
  }
  return made;
}

}  // namespace tutti
