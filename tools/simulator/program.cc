#include "tools/simulator/program.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "src/plan/fuse.h"
#include "src/plan/plan.h"
#include "tools/simulator/joined_steps.h"

namespace tutti::simulator {
namespace {

bool is_source(EndKind kind) { return kind <= EndKind::read; }

EndKind kind_of(const Operand& operand, bool source) {
  if (operand.space == Space::lane) return source ? EndKind::receive : EndKind::send;
  if (operand.space == Space::flag) return source ? EndKind::await : EndKind::signal;
  return source ? EndKind::read : EndKind::write;
}

// Returns true if the operands are the same units of the memory of so many ranks, which switches can reduce or store at
// once.
bool of_all_ranks(std::span<const Operand> operands, Rank ranks) {
  const Operand* first = nullptr;
  Rank found = 0;
  for (const Operand& operand : operands) {
    if (!operand.is_memory()) continue;
    if (first == nullptr) first = &operand;
    Operand same = operand;
    same.peer = first->peer;
    if (same != *first) return false;
    ++found;
  }
  return found == ranks && ranks > 1;  // Verified plans name no operand twice.
}

// Key of a lane: ranks, and number among the lanes between them. Images may have other tags, but in the same order.
struct LaneKey {
  Rank from = 0, to = 0;
  std::uint32_t which = 0;  // Kind of the lane, and its number among the tags of its kind.
  bool operator==(const LaneKey&) const = default;
};

struct HashOfLane {
  std::size_t operator()(const LaneKey& key) const {
    std::uint64_t mixed = (std::uint64_t{key.from} << 32 | key.to) * 0x9e3779b97f4a7c15ULL + key.which;
    mixed ^= mixed >> 29;
    return static_cast<std::size_t>(mixed * 0xbf58476d1ce4e5b9ULL);
  }
};

// Messages that enter at one end and leave at the other, in order.
struct Traffic {
  std::uint64_t sent = 0, received = 0;  // Digests.
  std::uint32_t messages = 0, taken = 0;
};

std::uint64_t digested(std::uint64_t digest, std::uint32_t units) { return (digest ^ units) * 0x100000001b3ULL + 1; }

class Compiler {
 public:
  Compiler(Program& program, const Network& network, const ProgramLimits& limits)
      : program_(program), network_(network), limits_(limits), ranks_(network.ranks()) {
    program_.sharers.resize(network.resources());
  }

  Status add(const Plan& plan, std::uint32_t order = 0) {
    const Rank self = plan.steps.self();
    first_rank_ = order * ranks_;
    find_tags(plan);
    std::size_t stage = 0;
    for (std::uint32_t round = 0; round <= plan.shape.rounds; ++round) {
      while (stage < plan.shape.stages.size() && plan.shape.stages[stage] == round) {
        program_.stages.push_back(static_cast<std::uint32_t>(program_.steps.size()));
        ++stage;
      }
      if (round == plan.shape.rounds) break;
      for (std::uint32_t i = plan.rounds[round]; i < plan.rounds[round + 1]; ++i)
        TUTTI_CHECK_OK(add(self, plan.steps[i]));
    }
    program_.stages.push_back(static_cast<std::uint32_t>(program_.steps.size()));
    return {};
  }

  Status check() const {
    for (std::uint32_t lane = 0; lane < traffic_.size(); ++lane) {
      const Traffic& traffic = traffic_[lane];
      if (traffic.sent == traffic.received && traffic.messages == traffic.taken) continue;
      const LaneLinks& links = program_.lanes[lane];
      return internal_error("wrong plan: rank " + std::to_string(links.from % ranks_) + " sends " +
                            std::to_string(traffic.messages) + " messages or signals to rank " +
                            std::to_string(links.to % ranks_) + ", which awaits " + std::to_string(traffic.taken));
    }
    return {};
  }

 private:
  using TagKey = std::pair<std::uint64_t, std::uint16_t>;  // {peer and kind, tag}

  static std::uint64_t tag_group(const Operand& operand, EndKind kind) {
    return std::uint64_t{operand.peer} << 8 | static_cast<std::uint64_t>(kind);
  }

  void find_tags(const Plan& plan) {
    tags_.clear();
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      const Step step = plan.steps[i];
      for (const Operand& operand : step.sources) note_tag(operand, true);
      for (const Operand& operand : step.targets) note_tag(operand, false);
    }
    std::sort(tags_.begin(), tags_.end());
    tags_.erase(std::unique(tags_.begin(), tags_.end()), tags_.end());
  }
  void note_tag(const Operand& operand, bool source) {
    if (!operand.is_memory()) tags_.emplace_back(tag_group(operand, kind_of(operand, source)), operand.tag);
  }
  std::uint32_t number_of_tag(const Operand& operand, EndKind kind) const {
    if (operand.is_memory()) return 0;
    const std::uint64_t group = tag_group(operand, kind);
    const auto first = std::lower_bound(tags_.begin(), tags_.end(), TagKey{group, 0});
    return static_cast<std::uint32_t>(std::lower_bound(first, tags_.end(), TagKey{group, operand.tag}) - first);
  }

  // Rotates sources in peers' memory, so that ranks which read concurrently begin with different peers.
  std::span<const Operand> rotated(Rank self, std::span<const Operand> sources) {
    const auto later = std::find_if(sources.begin(), sources.end(),
                                    [&](const Operand& operand) { return operand.is_memory() && operand.peer > self; });
    if (later == sources.end()) return sources;
    rotated_.assign(later, sources.end());
    rotated_.insert(rotated_.end(), sources.begin(), later);
    return rotated_;
  }

  Status add(Rank self, const Step& step) {
    TimedStep timed{.first = static_cast<std::uint32_t>(program_.ends.size())};
    timed.gathered = limits_.multicast && of_all_ranks(step.sources, near_);
    timed.spread = limits_.multicast && of_all_ranks(step.targets, near_);
    if (limits_.multicast) TUTTI_CHECK_OK(check_multicast(self, step, timed));
    for (const Operand& operand : rotated(self, step.sources)) {
      timed.units = std::max(timed.units, operand.count);
      if (operand.is_memory() && operand.peer == self && !timed.gathered) continue;
      const End end = TUTTI_TRY(end_of(self, operand, true));
      program_.ends.push_back(end);
      ++timed.sources;
    }
    for (const Operand& operand : step.targets) {
      timed.units = std::max(timed.units, operand.count);
      if (operand.space == Space::lane) program_.message_units = std::max(program_.message_units, operand.count);
      if (operand.is_memory() && operand.peer == self && !timed.spread) continue;
      const End end = TUTTI_TRY(end_of(self, operand, false));
      program_.ends.push_back(end);
      ++timed.targets;
    }
    timed.folds = step.sources.size() > 1;
    if (limits_.joins_copies && (joined_.join_copy(self, step, timed) || joined_.join_read(self, step, timed) ||
                                 joined_.join_write(self, step, timed)))
      return {};
    longest_ = std::max(longest_, timed.units);
    if (has_lanes_) program_.longest = longest_;
    if (limits_.joins_copies && joined_.join_message(self, step, timed)) return {};
    program_.steps.push_back(timed);
    return {};
  }

  // Fails if a step has other transfers than those of switches, for which the links are not modelled.
  Status check_multicast(Rank self, const Step& step, const TimedStep& timed) const {
    const auto passes = [&](const Operand& operand) {
      if (operand.space == Space::flag || operand.peer / near_ != self / near_) return false;
      return operand.space == Space::lane || operand.peer != self;
    };
    const bool apart = (!timed.gathered && std::any_of(step.sources.begin(), step.sources.end(), passes)) ||
                       (!timed.spread && std::any_of(step.targets.begin(), step.targets.end(), passes));
    if (!apart) return {};
    return unsupported("the plan has messages between two ranks, which switches can neither reduce nor multicast");
  }

  Result<End> end_of(Rank self, const Operand& operand, bool source) {
    const EndKind kind = kind_of(operand, source);
    const Rank from = first_rank_ + (source ? operand.peer : self);
    const Rank to = first_rank_ + (source ? self : operand.peer);
    const Symmetry& symmetry = program_.symmetry;
    const auto channel = kind == EndKind::receive || kind == EndKind::send   ? 0U
                         : kind == EndKind::await || kind == EndKind::signal ? 1U
                                                                             : 2U;
    const LaneKey key = {symmetry.representative(from), symmetry.seen(from, to),
                         channel << 16 | number_of_tag(operand, kind)};
    const auto [found, is_new] = numbers_.try_emplace(key, static_cast<std::uint32_t>(program_.lanes.size()));
    if (is_new) TUTTI_CHECK_OK(add_lane(from, to));
    const std::uint32_t lane = found->second;
    Traffic& traffic = traffic_[lane];
    if (channel < 2 && is_source(kind)) {
      traffic.received = digested(traffic.received, operand.count);
      ++traffic.taken;
    } else if (channel < 2) {
      traffic.sent = digested(traffic.sent, operand.count);
      ++traffic.messages;
    }
    if (channel == 0) has_lanes_ = true;
    else program_.sliceable = false;
    if (kind == EndKind::send || channel == 2) ++program_.messages;
    return End(kind, lane);
  }

  Result<Route> route_of(Rank from, Rank to) const {
    if (from == to && limits_.multicast) return network_.through_switches(from);
    return network_.route(from, to);
  }

  // Adds a lane. Its links on the sender's side are those of the sender's representative; its links on the receiver's
  // side are those of the receiver's representative.
  Status add_lane(Rank from, Rank to) {
    if (program_.lanes.size() >= limits_.max_lanes)
      return unsupported("the simulated ranks have more than " + std::to_string(limits_.max_lanes) +
                         " lanes; use fewer ranks, or an algorithm with fewer peers per rank");
    const Symmetry& symmetry = program_.symmetry;
    LaneLinks lane{.from = symmetry.representative(from),
                   .to = symmetry.seen(from, to),
                   .distance = symmetry.distance(from, to),
                   .route = {}};
    lane.route = TUTTI_TRY(route_of(lane.from % ranks_, lane.to % ranks_));
    if (!symmetry.trivial()) {
      const Rank writer = symmetry.seen(lane.to, lane.from), reader = symmetry.representative(lane.to);
      const Route there = TUTTI_TRY(route_of(writer, reader));
      lane.route.in = there.in;
      lane.route.ins = there.ins;
    }
    program_.lanes.push_back(lane);
    traffic_.emplace_back();
    for (std::size_t i = 0; i < lane.route.outs; ++i) TUTTI_CHECK_OK(count_sharers(lane, lane.route.out[i], i, true));
    for (std::size_t i = 0; i < lane.route.ins; ++i) TUTTI_CHECK_OK(count_sharers(lane, lane.route.in[i], i, false));
    return {};
  }

  // Counts the images of a representative that use a link. Fails unless parallel links divide evenly among the images:
  // images would share a single link evenly, which queues in order of arrival do not do.
  Status count_sharers(const LaneLinks& lane, ResourceId id, std::size_t at, bool out) {
    std::uint32_t& sharers = program_.sharers[id];
    if (sharers > 0) return {};
    const Symmetry& symmetry = program_.symmetry;
    const Rank to = out ? lane.to : symmetry.representative(lane.to);
    const Rank from = out ? lane.from : symmetry.seen(lane.to, lane.from);
    for (Rank element = 0; element < symmetry.order(); ++element) {
      const Route image =
          TUTTI_TRY(route_of(symmetry.moved(from, element) % ranks_, symmetry.moved(to, element) % ranks_));
      sharers += (out ? image.out[at] : image.in[at]) == id ? 1 : 0;
    }
    if (network_.resource(id).parallel % sharers == 0) return {};
    return internal_error(std::to_string(sharers) + " ranks share " + network_.name(id) +
                          ", but only one of them would be simulated");
  }

  Program& program_;
  const Network& network_;
  const ProgramLimits limits_;
  const Rank ranks_;
  const Rank near_ = network_.ranks_per_host() * network_.hosts_per_nvlink_domain();  // Ranks that switches connect.
  Rank first_rank_ = 0;  // First rank of the current order.
  std::unordered_map<LaneKey, std::uint32_t, HashOfLane> numbers_;
  std::vector<Traffic> traffic_;  // [lane]
  std::vector<TagKey> tags_;      // Tags of the current plan, sorted.
  std::vector<Operand> rotated_;
  std::uint32_t longest_ = 0;
  JoinedSteps joined_{program_};
  bool has_lanes_ = false;
};

constexpr std::uint64_t kOperandsOfAStep = 8;  // Steps with more operands count as several towards max_merging.

std::uint64_t operands_of(const Plan& plan) {
  std::uint64_t operands = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i)
    operands += plan.steps[i].sources.size() + plan.steps[i].targets.size();
  return operands;
}

// Switches must connect all ranks, or those of each host if the plan names only these together.
Status check_switches(const Algorithm& algorithm, const Problem& problem, const Network& network,
                      const ProgramLimits& limits) {
  if (!limits.multicast || network.switched()) return {};
  if (network.one_island() && names_hosts(algorithm, problem)) return {};
  return unsupported("no NVSwitches connect all ranks, so reductions and multicasts in switches are not possible");
}

Across across_of(const ProgramLimits& limits) { return limits.one_stage ? Across::stages : Across::rounds; }

// Compiles the plans of all classes together, so that stages are merged like in the executors.
Status compile_merged(const Algorithm& algorithm, const Problem& problem, Across across, Program& program,
                      Compiler& compiler) {
  std::vector<Plan> plans;
  for (Rank number = 0; number < program.classes(); ++number) {
    plans.push_back(emit_plan(algorithm, problem, program.symmetry.representative_of_class(number)));
    expand_all_ranks(plans.back());
    fuse(plans.back(), across);
  }
  fuse_stages(plans);
  program.stage_count = static_cast<std::uint32_t>(plans[0].shape.stages.size());
  for (const Plan& plan : plans) TUTTI_CHECK_OK(compiler.add(plan));
  return {};
}

Status compile_one_by_one(const Algorithm& algorithm, const Problem& problem, Across across, Program& program,
                          Compiler& compiler) {
  for (Rank number = 0; number < program.classes(); ++number) {
    Plan plan = emit_plan(algorithm, problem, program.symmetry.representative_of_class(number));
    expand_all_ranks(plan);
    if (program.fused) fuse(plan, across);
    program.stage_count = static_cast<std::uint32_t>(plan.shape.stages.size());
    TUTTI_CHECK_OK(compiler.add(plan));
  }
  return {};
}

}  // namespace

Result<Program> make_program(const Algorithm& algorithm, const Problem& problem, const Network& network,
                             const Symmetry& symmetry, const ProgramLimits& limits) {
  TUTTI_CHECK_OK(check_switches(algorithm, problem, network, limits));
  Program program;
  program.multicast = limits.multicast;
  program.symmetry = symmetry;
  program.units = algorithm.shape(problem).units;
  // Ranks have similar numbers of steps, so the maximum of a few ranks is an estimate for all.
  std::uint64_t max = 0, max_operands = 0;
  for (Rank number = 0; number < std::min<Rank>(program.classes(), 3); ++number) {
    Plan plan = emit_plan(algorithm, problem, symmetry.representative_of_class(number));
    expand_all_ranks(plan);
    max = std::max<std::uint64_t>(max, plan.steps.size());
    max_operands = std::max(max_operands, operands_of(plan));
  }
  const std::uint64_t operands = max_operands * program.classes();
  if (operands > limits.max_operands) {
    return unsupported(std::string(algorithm.name()) + " has about " + std::to_string(operands) +
                       " operands on the simulated ranks; the maximum is " + std::to_string(limits.max_operands));
  }
  const std::uint64_t steps = max * program.classes();
  if (steps > limits.max_steps) {
    return unsupported(std::string(algorithm.name()) + " has about " + std::to_string(steps) +
                       " steps on the simulated ranks; the maximum is " + std::to_string(limits.max_steps));
  }
  program.fused = steps * max <= limits.max_fusing;
  Compiler compiler(program, network, limits);
  const bool merged = program.fused && std::max(steps, operands / kOperandsOfAStep) <= limits.max_merging;
  const Across across = across_of(limits);
  TUTTI_CHECK_OK(merged ? compile_merged(algorithm, problem, across, program, compiler)
                        : compile_one_by_one(algorithm, problem, across, program, compiler));
  TUTTI_CHECK_OK(compiler.check());
  program.names_all = limits.multicast && names_all(algorithm, problem);
  const bool in_ring = program.names_all || limits.in_ring;
  if (in_ring && algorithm.shape(problem).scratch > 0) program.longest = algorithm.shape(problem).scratch;
  return program;
}

Result<Program> make_program(const Algorithm& algorithm, const Problem& problem, const Network& network,
                             std::span<const RankMapping> orders, const ProgramLimits& limits) {
  TUTTI_CHECK_OK(check_switches(algorithm, problem, network, limits));
  Program program;
  program.multicast = limits.multicast;
  program.orders = static_cast<std::uint32_t>(orders.size());
  program.symmetry = no_symmetry(network);
  program.symmetry.hosts.size *= program.orders;
  program.units = algorithm.shape(problem).units;
  program.fused = true;
  Compiler compiler(program, network, limits);
  for (std::uint32_t order = 0; order < program.orders; ++order) {
    std::vector<Plan> plans = emit_plans(algorithm, logical(orders[order], problem));
    for (Plan& plan : plans) {
      expand_all_ranks(plan);
      fuse(plan, across_of(limits));
    }
    fuse_stages(plans);
    program.stage_count = static_cast<std::uint32_t>(plans[0].shape.stages.size());
    std::vector<Plan> placed(plans.size());
    for (const Plan& plan : plans) {
      Plan mine = mapped_plan(orders[order], problem, plan);
      const Rank self = mine.steps.self();
      placed[self] = std::move(mine);
    }
    for (const Plan& plan : placed) TUTTI_CHECK_OK(compiler.add(plan, order));
  }
  TUTTI_CHECK_OK(compiler.check());
  return program;
}

}  // namespace tutti::simulator
