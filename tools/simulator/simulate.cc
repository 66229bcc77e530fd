#include "tools/simulator/simulate.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "src/plan/plan.h"

namespace tutti::simulator {
namespace {

// Number of chunks that are simulated. The loop fills and drains, and has a constant rate in between.
std::uint32_t chunks_to_simulate(std::uint32_t chunks, const Program& program, std::uint64_t max_events) {
  const std::uint64_t each = program.steps.size() + program.messages;
  const std::uint64_t affordable = max_events / std::max<std::uint64_t>(each, 1);
  const std::uint64_t min = 8 + 3 * std::uint64_t{program.stage_count};
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(chunks, std::max(affordable, min)));
}

// Time between two chunks that neither fill nor drain the loop.
double period_us(const EngineRequest& request, const EngineResult& result, std::uint32_t stages) {
  const std::uint32_t drain = request.loop.skew * (stages - 1);
  const std::uint32_t last = request.chunks > drain + 2 ? request.chunks - 1 - drain : request.chunks - 1;
  const std::uint32_t first = last / 3;
  return (result.chunk_us[last] - result.chunk_us[first]) / (last - first);
}

// Steps that name all other ranks are too long for many ranks (Steps::add()). A small problem shows whether there are
// any.
constexpr Rank kMaxPeers = 60'000;

bool names_all_ranks(const Algorithm& algorithm, Collective collective) {
  constexpr Rank kFew = 64, kOfAHost = 8;
  Problem problem{.collective = collective, .ranks = kFew, .groups = {}};
  problem.groups.emplace_back(kFew / kOfAHost, kOfAHost);
  if (!algorithm.supports(problem)) return false;
  const Plan plan = emit_plan(algorithm, problem, 0);
  std::size_t longest = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    longest = std::max({longest, plan.steps[i].sources.size(), plan.steps[i].targets.size()});
  return longest + 1 >= kFew;
}

// Errors that only the number of hosts causes: blocks cannot be cut into so many parts, or lanes have too few tags.
std::string fewer_that_work(const Algorithm& algorithm, const Problem& problem) {
  if (problem.groups.size() != 1 || problem.groups[0].empty()) return "";
  const Rank size = problem.groups[0].front();
  const auto supports = [&](std::size_t hosts) {
    Problem fewer = problem;
    fewer.groups[0].assign(hosts, size);
    fewer.ranks = static_cast<Rank>(hosts * size);
    fewer.root = 0;
    return algorithm.supports(fewer);
  };
  std::size_t works = 2, fails = problem.groups[0].size();
  if (fails <= works || !supports(works)) return "";
  while (fails - works > 1) {
    const std::size_t middle = works + (fails - works) / 2;
    (supports(middle) ? works : fails) = middle;
  }
  return "; the maximum is " + std::to_string(works) + " hosts, " + std::to_string(works * size) +
         " ranks, because its plans would cut blocks into too many parts";
}

void scale(Chain& chain, double factor) {
  const auto by = static_cast<float>(factor);
  for (float* part : {&chain.channel, &chain.hops, &chain.slots, &chain.queues}) *part *= by;
  for (float& part : chain.links) part *= by;
}

// Sets the parameters of compressed messages.
void code(EngineRequest& request, const Call& call, const Costs& costs) {
  if (call.compression == CompressionFormat::none) return;
  const double element_bytes = size_of(call.type);
  request.compressed_part = compressed_bytes(call.compression) / (kCompressionGroup * element_bytes);
  const CodingTimes times = coding_times(costs, call.compression, call.type);
  const double values = sizeof(float) / element_bytes / request.channels;
  request.encode_us = times.encode_us * values;
  request.decode_us = times.decode_us * values;
}

// If links are no bottleneck, no step waits for data that compression removes.
void settle(Outcome& outcome, const Costs& costs) {
  constexpr auto links = static_cast<std::size_t>(LinkKind::nvlink);
  const double network = outcome.chain.links[static_cast<std::size_t>(LinkKind::network)];
  const double carried = outcome.chain.links[links];
  if (carried == 0) return;
  const double busy = carried + outcome.chain.queues * carried / (carried + network);
  const double lost = costs.unsettled_us * (1 - std::exp(-busy / costs.settle_us));
  outcome.chain.links[links] += static_cast<float>(lost);
  outcome.time_us += lost;
}

}  // namespace

double bus_factor(Collective collective, Rank ranks) {
  const double n = ranks;
  switch (collective) {
    case Collective::all_reduce: return 2 * (n - 1) / n;
    case Collective::broadcast:
    case Collective::reduce: return 1;
    default: return (n - 1) / n;
  }
}

double block_bytes(Collective collective, Rank ranks, double bytes) {
  const bool whole =
      collective == Collective::all_reduce || collective == Collective::broadcast || collective == Collective::reduce;
  return whole ? bytes : bytes / ranks;
}

void cut(Call& call, const Costs& costs, Collective collective, Rank ranks) {
  const auto protocol = static_cast<std::size_t>(call.protocol);
  const double part = call.protocol == Protocol::ll ? call.bytes / ranks : call.bytes;
  const double channels = std::ceil(part / costs.channel_bytes[protocol]);
  call.channels = static_cast<std::uint32_t>(std::clamp<double>(channels, 1, costs.max_channels));
  call.chunk_bytes = has_root(collective) ? costs.chain_chunk_bytes[protocol] : costs.chunk_bytes[protocol];
}

Problem problem_on(const Network& network, Collective collective, Rank root) {
  Problem problem{.collective = collective, .ranks = network.ranks(), .root = root, .groups = {}};
  const Rank members = network.ranks_per_host() * network.hosts_per_nvlink_domain();
  const Rank groups = network.ranks() / members;
  if (groups > 1 && members > 1) problem.groups.emplace_back(groups, members);
  return problem;
}

Result<Simulation> Simulation::make(const Network& network, const Costs& costs, const Algorithm& algorithm,
                                    const Problem& problem, const Limits& limits) {
  if (!algorithm.supports(problem)) {
    return invalid_argument(std::string(algorithm.name()) + " does not support " + name(problem.collective) + " of " +
                            std::to_string(problem.ranks) + " ranks on these hosts" +
                            fewer_that_work(algorithm, problem));
  }
  if (limits.program.multicast && costs.multicast == 0)
    return unsupported("the cost model " + std::string(costs.name) + " has no reductions and multicasts in switches");
  if (problem.ranks > kMaxPeers && names_all_ranks(algorithm, problem.collective))
    return unsupported(std::string(algorithm.name()) +
                       " has steps with an operand per rank, which is not supported for " +
                       std::to_string(problem.ranks) + " ranks; the maximum is " + std::to_string(kMaxPeers));
  Simulation simulation(network, costs, problem, limits);
  ProgramLimits program_limits = limits.program;
  program_limits.joins_copies = costs.joins_copies;
  if (limits.program.multicast && !names_all(algorithm, problem))
    simulation.costs_.base_us.fill(costs.multicast_base_us);
  else if (std::string_view(algorithm.name()).ends_with("_mapped"))
    for (double& base_us : simulation.costs_.base_us) base_us += costs.mapped_us;
  if (!limits.orders.empty()) {
    for (std::size_t orders = 1; orders <= limits.orders.size(); ++orders) {
      const auto first = std::span(limits.orders).first(orders);
      simulation.programs_.push_back(TUTTI_TRY(make_program(algorithm, problem, network, first, program_limits)));
    }
    return simulation;
  }
  Status last;
  for (const Symmetry& symmetry :
       limits.symmetric ? symmetries_of(algorithm, problem, network) : std::vector<Symmetry>{no_symmetry(network)}) {
    Result<Program> program = make_program(algorithm, problem, network, symmetry, program_limits);
    if (program.ok()) {
      simulation.programs_.push_back(std::move(program).value());
      return simulation;
    }
    last = std::move(program).status();
  }
  return last;
}

const Program& Simulation::program_of(const Call& call) const {
  const std::size_t channels = std::clamp(call.channels, 1U, costs_.max_channels);
  return programs_[std::min(channels, programs_.size()) - 1];
}

EngineRequest Simulation::request_for(const Call& call) const {
  const Program& program = program_of(call);
  EngineRequest request{.costs = costs_, .protocol = call.protocol, .launch = call.launch, .loop = call.loop};
  request.channels = std::clamp(call.channels, 1U, costs_.max_channels) / program.orders;  // Channels of each order.
  const double unit = block_bytes(problem_.collective, problem_.ranks, call.bytes) / program.units / program.orders;
  code(request, call, costs_);
  const double longest =
      unit * program.longest / request.channels * request.compressed_part;  // Bytes of a channel's message as sent.
  double chunk_bytes = call.chunk_bytes;
  if (call.slot_bytes > 0 && program.message_units > 0)
    chunk_bytes = std::min(chunk_bytes, call.slot_bytes * program.longest / program.message_units);
  const double wanted = chunk_bytes > 0 ? std::ceil(longest / chunk_bytes) : 1;
  request.loop.chunks = static_cast<std::uint32_t>(std::clamp(wanted, 1.0, 1e9));
  if (request.loop.chunks == 1) request.loop.skew = 0;
  request.chunks = chunks_to_simulate(request.loop.chunks, program, limits_.max_events);
  request.unit_bytes = unit / request.loop.chunks;
  const double slices = std::floor(longest / request.loop.chunks / std::max(costs_.shortest_slice_bytes, 1.0));
  const std::uint32_t max = costs_.slices[static_cast<std::size_t>(call.protocol)];
  request.parts = program.sliceable ? static_cast<std::uint32_t>(std::clamp<double>(slices, 1, max)) : 1;
  request.loop.slots *= request.parts;  // A slot holds a message, and each slice frees its own part.
  request.slice_bytes = call.chunk_bytes * request.channels;
  request.jitter = call.jitter;
  request.seed = call.seed;
  request.trace = call.trace;
  return request;
}

std::uint64_t Simulation::events_of(const Call& call) const {
  return simulator::events_of(program_of(call), request_for(call));
}

Result<Outcome> Simulation::run(const Call& call) const {
  EngineRequest request = request_for(call);
  Result<EngineResult> result = run_engine(program_of(call), *network_, request);
  std::string note;
  if (!result.ok() && request.loop.skew > 0) {  // Executors do the same if the slots do not suffice.
    note = "chunks do not overlap: " + std::move(result).status().message();
    request.loop.skew = 0;
    if (request.trace != nullptr) request.trace->clear();
    result = run_engine(program_of(call), *network_, request);
  }
  Outcome outcome = outcome_of(call, request, TUTTI_TRY(std::move(result)));
  if (!note.empty()) outcome.notes.push_back(note);
  return outcome;
}

Outcome Simulation::outcome_of(const Call& call, const EngineRequest& request, EngineResult result) const {
  const Program& program = program_of(call);
  const std::uint32_t chunks = request.loop.chunks;
  Outcome outcome;
  outcome.time_us = result.time_us;
  outcome.chain = result.chain;
  outcome.chunks = chunks;
  outcome.simulated_chunks = request.chunks;
  outcome.events = result.events;
  const double times = static_cast<double>(chunks) / request.chunks;
  if (chunks > request.chunks) {
    outcome.time_us += (chunks - request.chunks) * period_us(request, result, program.stage_count);
    scale(outcome.chain, (outcome.time_us - result.chain.launch) / (result.time_us - result.chain.launch));
    outcome.notes.push_back(std::to_string(request.chunks) + " of " + std::to_string(chunks) +
                            " chunks were simulated; the others are assumed to take equal times");
  }
  if (!program.multicast) settle(outcome, costs_);
  if (!program.symmetry.trivial()) outcome.notes.push_back("simulated " + describe(program.symmetry));
  if (call.jitter > 0)
    outcome.notes.emplace_back(program.symmetry.trivial()
                                   ? "each rank was simulated, with its own random delays"
                                   : "ranks that were simulated once have the same random delays");
  if (!program.fused) outcome.notes.emplace_back("steps were not fused, because there are too many");
  if (program.orders > 1)
    outcome.notes.push_back("channels have " + std::to_string(program.orders) + " orders of ranks");
  if (request.channels > 1) outcome.notes.emplace_back("the channels of a rank behave alike and were simulated as one");
  const LaunchWork work = {.devices = network_->ranks_per_host(), .channels = request.channels * program.orders};
  const double host = launch_us(costs_, call.launch, work);
  if (host > outcome.time_us) {
    outcome.chain.launch += static_cast<float>(host - outcome.time_us);
    outcome.time_us = host;
    outcome.notes.emplace_back("the host is slower than the devices, so its time counts");
  }
  outcome.algorithm_gbytes_per_s = call.bytes / outcome.time_us * 1e-3;
  outcome.bus_gbytes_per_s = outcome.algorithm_gbytes_per_s * bus_factor(problem_.collective, problem_.ranks);
  outcome.data_bytes = result.data_bytes * times * program.symmetry.order();
  for (std::size_t kind = 0; kind < kLinkKinds; ++kind) {
    KindUse use;
    use.kind = static_cast<LinkKind>(kind);
    ResourceId busiest = 0;
    for (ResourceId id = 0; id < result.links.size(); ++id) {
      if (result.links[id].bytes == 0 || network_->resource(id).kind != use.kind) continue;
      use.bytes += result.links[id].bytes * times * program.symmetry.order();
      if (result.links[id].busy_us <= use.busiest_part) continue;
      use.busiest_part = result.links[id].busy_us;
      busiest = id;
    }
    if (use.bytes == 0) continue;
    use.busiest = network_->name(busiest);
    use.busiest_part *= times / outcome.time_us;
    outcome.links.push_back(std::move(use));
  }
  return outcome;
}

}  // namespace tutti::simulator
