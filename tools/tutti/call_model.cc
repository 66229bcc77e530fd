#include "tools/tutti/call_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "algorithms/catalogue.h"

namespace tutti::tool {
namespace {

// The parts of a simulated time, in the columns of predictions. They add up to the time.
Prediction prediction_from(const simulator::Chain& chain) {
  Prediction parts{.launch_us = chain.launch,
                   .hops_us = static_cast<double>(chain.hops) + chain.slots,
                   .links_us = chain.queues,
                   .work_us = chain.channel};
  for (const float us : chain.links) parts.links_us += us;
  return parts;
}

// Rails between hosts, or between NVLink domains, which are the groups of hierarchical algorithms.
Rails rails_of(const simulator::Network& network) {
  const Rank hosts_per_domain = network.hosts_per_nvlink_domain();
  const std::vector<Rank> domains(network.cluster().hosts / hosts_per_domain,
                                  network.ranks_per_host() * hosts_per_domain);
  return Rails({.groups = {domains}, .order = {}});
}

// Holds one plan at a time, because those of all ranks can take gigabytes.
RemotePeers remote_peers_of(const Algorithm& algorithm, const Problem& problem, const Rails& rails) {
  RemotePeers peers = RemotePeers::partners;
  for (Rank rank = 0; rank < problem.ranks && peers != RemotePeers::all; ++rank) {
    const Plan plan = emit_plan(algorithm, problem, rank);
    peers = std::min(peers, rails.peers_of({&plan, 1}, {}));
  }
  return peers;
}

}  // namespace

CallModel::CallModel(Networks networks, const simulator::Costs& costs, std::uint32_t max_orders)
    : networks_(std::move(networks)),
      costs_(costs),
      on_devices_(!networks_.own.cluster().host.all(NodeKind::gpu).empty()),
      rings_(orders_on(networks_.own, max_orders)),
      rails_(rails_of(networks_.own)) {}

bool CallModel::has_orders(const Algorithm& algorithm) const {
  return !orders_of(networks_.own, rings_, algorithm.name()).empty();
}

bool CallModel::can_map(const Algorithm& algorithm) const {
  return !accesses_peers(algorithm.name()) || !spans_network() || is_staged_over_hosts(algorithm.name());
}

bool CallModel::spans_network() const {
  const auto last = network().route(0, network().ranks() - 1);
  return !last.ok() || last.value().links == LinkClass::network;
}

bool CallModel::on_nvlinks() const { return on_devices_ && !spans_network() && network().switched(); }

bool CallModel::switches_add() const {
  const bool in_each_domain = spans_network() && network().one_island();
  return on_devices_ && (on_nvlinks() || in_each_domain) && costs_.multicast > 0;
}

LaneBudget CallModel::lane_budget() const {
  const Rank near = network().ranks_per_host() * network().hosts_per_nvlink_domain();
  return budget_for({.local = near - 1,
                     .remote = network().ranks() - near,
                     .partners = rails_.partners(),
                     .others_on_rail = rails_.others(),
                     .multicast = switches_add()});
}

void CallModel::set_lanes(Query& query) const {
  const LaneBudget budget = lane_budget();
  query.lane_channels = budget.channels_to_all();
  query.local_channels = budget.channels;
  query.remote_channels = budget.fewer_peers;
  query.remote_ll_channels = on_devices_ && spans_network() ? budget.remote_ll_channels : 0;
  if (!spans_network()) query.slot_bytes = budget.slots.simple;
  if (rails_.partners() == 0 || query.problem.groups.empty()) return;
  const Problem& problem = query.problem;
  auto known =
      std::find_if(on_rails_.begin(), on_rails_.end(), [&](const auto& each) { return each.first == problem; });
  if (known == on_rails_.end()) {
    known = on_rails_.insert(on_rails_.end(), {problem, {}});
    for (const Algorithm* algorithm : catalogue(problem.collective)) {
      if (!requires_hosts(*algorithm, problem.collective) || !algorithm->supports(problem)) continue;
      const RemotePeers peers = remote_peers_of(*algorithm, problem, rails_);
      if (peers != RemotePeers::all) known->second.emplace_back(algorithm, peers);
    }
  }
  query.on_rails = known->second;
}

StagingRing CallModel::ring() const {
  const auto last = network().route(0, network().ranks() - 1);
  if (!on_devices_ || !last.ok()) return {};
  if (spans_network()) return switches_add() ? lane_budget().ring : StagingRing();
  return last.value().links == LinkClass::nvlink ? lane_budget().ring : StagingRing();
}

Result<simulator::Simulation> CallModel::prepare(const Algorithm& algorithm, const Problem& problem,
                                                 simulator::Limits limits) const {
  const bool knows_hosts = requires_hosts(algorithm, problem.collective);
  const simulator::Network& network = knows_hosts ? networks_.own : networks_.spread;
  limits.orders = orders_of(network, rings_, algorithm.name());
  const std::string_view name = algorithm.name();
  limits.program.in_ring = is_staged_over_hosts(name);
  // Switches neither add nor multicast in an all-to-all.
  limits.program.multicast = (name == kSwitchStaged || name == kSwitchMapped || is_staged_over_hosts(name)) &&
                             problem.collective != Collective::all_to_all && switches_add();
  return simulator::Simulation::make(network, costs_, algorithm, problem, limits);
}

Query CallModel::query_of(const Problem& problem, double bytes) const {
  const double block = simulator::block_bytes(problem.collective, problem.ranks, bytes);
  Query query;
  query.problem = problem;
  query.block_bytes = static_cast<std::uint64_t>(std::max(block, 1.0));
  query.network = spans_network();
  query.thread_blocks = on_devices_ ? costs_.max_channels : 0;
  query.only_rings = rings_.only_rings;
  query.on_nvlinks = on_nvlinks();
  set_lanes(query);
  query.ring = ring();
  query.by_switches = query.by_switches_mapped = switches_add();
  return query;
}

simulator::Call CallModel::call_of(const Choice& choice, double bytes) const {
  simulator::Call call;
  call.bytes = bytes;
  call.protocol = choice.protocol;
  call.compression = choice.compression;
  call.channels = choice.channels;
  call.chunk_bytes = static_cast<double>(choice.chunk_bytes);
  if (on_devices_ && choice.protocol == Protocol::simple && !choice.mapped) {
    const LaneBudget budget = lane_budget();
    const SlotSizes slots = spans_network() ? budget.slots_between_hosts(choice.remote_peers) : budget.slots;
    if (choice.staged) call.slot_bytes = slots.simple;
    else call.chunk_bytes = std::min<double>(call.chunk_bytes, slots.simple);
  }
  call.loop = choice.loop;
  call.loop.slots = costs_.slots[static_cast<std::size_t>(choice.protocol)];
  return call;
}

double whole_bytes(const Query& query) {
  const Problem& problem = query.problem;
  return static_cast<double>(query.block_bytes) *
         std::max(input_blocks(problem, problem.root), output_blocks(problem, problem.root));
}

std::vector<std::string> notes_on_hosts(const simulator::Network& network) {
  if (network.cluster().hosts == 1) return {};
  std::vector<std::string> notes = {
      "Times of several hosts are not validated: on published tables that were kept aside, the mean error was 37 %.",
      "LL between hosts needs RDMA verbs with GPUDirect; times by --protocol Simple do not."};
  if (network.hosts_per_nvlink_domain() > 1)
    notes.emplace_back(
        "Within an NVLink domain, hosts share memory over NVLinks. Tutti was emulated there, and has not run on one.");
  return notes;
}

Status simulate_candidates(const CallModel& model, const Query& query, std::vector<Candidate>& found) {
  struct Run {
    Candidate* candidate;
    const simulator::Simulation* simulation;
    simulator::Call call;
    std::uint64_t events;
  };
  simulator::Limits limits;
  limits.max_events = kMaxEventsOfMany;
  limits.program.max_steps = kMaxStepsOfMany;
  std::map<std::string_view, std::optional<simulator::Simulation>> simulations;
  std::vector<Run> runs;
  for (Candidate& candidate : found) {
    candidate.predicted_us = 0;
    if (query.problem.ranks > kMaxRanksExplained) continue;
    const auto [simulation, is_new] = simulations.try_emplace(candidate.choice.algorithm);
    if (is_new) {
      const Algorithm& algorithm = *find(query.problem.collective, candidate.choice.algorithm);
      Result<simulator::Simulation> made = model.prepare(algorithm, query.problem, limits);
      if (made.ok()) simulation->second = std::move(made).value();
    }
    if (!simulation->second) continue;
    simulator::Call call = model.call_of(candidate.choice, whole_bytes(query));
    call.type = query.type;
    runs.push_back({&candidate, &*simulation->second, call, simulation->second->events_of(call)});
  }
  std::uint64_t max_events = kMaxEventsCompared;
  const auto has_fewer = [](const Run& a, const Run& b) { return a.events < b.events; };
  if (!runs.empty()) max_events = std::max(max_events, std::min_element(runs.begin(), runs.end(), has_fewer)->events);
  for (const Run& run : runs) {
    if (run.events > max_events) continue;
    const simulator::Outcome outcome = TUTTI_TRY(run.simulation->run(run.call));
    run.candidate->predicted_us = outcome.time_us;
    run.candidate->parts = prediction_from(outcome.chain);
  }
  if (found.empty()) return {};
  std::stable_sort(found.begin() + 1, found.end(), [](const Candidate& a, const Candidate& b) {
    return a.predicted_us > 0 && (b.predicted_us == 0 || a.predicted_us < b.predicted_us);
  });
  return {};
}

}  // namespace tutti::tool
