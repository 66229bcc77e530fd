// From a call to something that can run: choice, plan, proof, lanes, layout. Done once per shape of call.
#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "algorithms/catalogue.h"
#include "src/base/config.h"
#include "src/communicator/host_communicator.h"
#include "src/plan/fuse.h"
#include "src/plan/verify.h"

namespace tutti {
namespace {

constexpr Rank kAlwaysVerified = 16;  // Ranks up to which every plan is proved again before it runs.
constexpr std::uint64_t kCacheLine = 64;
constexpr std::uint64_t kMostPieces = 1U << 30;
constexpr std::uint64_t kStreamedBytes = 4 << 20;  // Outputs that would wash the caches out; measured out of place.

std::uint32_t mix(std::uint64_t value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33;
  value *= 0xc4ceb9fe1a85ec53ULL;
  return static_cast<std::uint32_t>(value ^ value >> 32);
}

Problem problem_of(const Call& call, Rank ranks) {
  Problem problem;
  problem.collective = call.collective;
  problem.ranks = ranks;
  problem.root = has_root(call.collective) ? call.root : 0;
  return problem;
}

std::uint64_t shape_of(const Call& call) {
  return std::uint64_t{call.root} << 32 | std::uint64_t(call.collective) << 24 | std::uint64_t(call.type) << 16 |
         std::uint64_t(call.reduction) << 8;
}

// How far the output begins behind the input, in bytes, where a rank passes one buffer as both. A rank that has only
// one of them passes no such thing: no two addresses are this far apart.
std::int64_t in_place_distance(const Call& call, Rank ranks, Rank rank) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();
  if (has_root(call.collective) && rank != call.root) return kNever;
  return -in_place_shift(problem_of(call, ranks), rank) * static_cast<std::int64_t>(call.count * size_of(call.type));
}

// The algorithm that would serve the call if all buffers were mapped; null if lanes serve it as well.
const Algorithm* mapped_algorithm(const Problem& problem, std::uint64_t block_bytes) {
  const auto choice = choose({problem, block_bytes, true, "", ""});
  if (!choice.ok() || !choice.value().mapped) return nullptr;
  const Algorithm* algorithm = find(problem.collective, choice.value().algorithm);
  return algorithm != nullptr && algorithm->supports(problem) ? algorithm : nullptr;
}

std::string names_for(const Problem& problem) {
  std::string names;
  for (const Algorithm* algorithm : catalogue(problem.collective)) {
    if (algorithm->supports(problem)) names += (names.empty() ? "" : ", ") + std::string(algorithm->name());
  }
  return names;
}

// Of plans whose number of pieces is not known yet: enough of them to show what happens with more.
Loop loop_of(bool overlaps) {
  return {.pieces = overlaps ? 2 * kBulkSlots : 1,
          .skew = overlaps ? 1U : 0U,
          .order = StageOrder::earliest_first,
          .slots = kBulkSlots};
}

// The flags of a plan, as both ends name them.
std::vector<LaneSpec> flags_of(const Plan& plan) {
  std::set<LaneSpec> flags;
  const Rank self = plan.steps.self();
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    for (const Operand& operand : plan.steps[s].sources) {
      if (operand.place == Place::flag) flags.insert(flag_spec(operand.peer, self, operand.tag));
    }
    for (const Operand& operand : plan.steps[s].targets) {
      if (operand.place == Place::flag) flags.insert(flag_spec(self, operand.peer, operand.tag));
    }
  }
  return {flags.begin(), flags.end()};
}

// Parts of a unit are a multiple of this long: whole cache lines, or in the lines of small messages, words.
std::uint64_t granule_bytes(bool lines) { return lines ? 8 : kCacheLine; }

// Parts so small that `longest` of them, one of each unit of a message, fit a slot; as small as they can be if they
// never do.
std::uint64_t pieces_for(std::uint64_t unit_bytes, std::uint32_t longest, std::uint64_t slot_bytes,
                         std::uint64_t granule) {
  const std::uint64_t room = std::max<std::uint64_t>(slot_bytes / granule / longest, 1) * granule;
  return std::max<std::uint64_t>((unit_bytes + room - 1) / room, 1);
}

}  // namespace

void CommunicatorOptions::force() {
  forced = 0;
  for (const std::string& word : {algorithm, protocol}) {
    for (const char letter : word + '/') forced = (forced ^ static_cast<unsigned char>(letter)) * 16777619U;
  }
}

Result<HostCommunicator::Prepared*> HostCommunicator::prepare_call(const Call& call,
                                                                   const CommunicatorOptions& options) {
  const CallKey key = key_of(call, options);
  auto& slot = calls_[mix(key.count * 31 + key.shape * 7 + key.in_place + key.forced) % calls_.size()];
  if (slot == nullptr || !(slot->key == key)) {
    board_.show_cpus(rank_);
    auto fresh = TUTTI_TRY(prepare(call, options));
    fresh->key = key;
    if (latest_ == slot.get()) latest_ = nullptr;
    slot = std::move(fresh);
  }
  latest_ = slot.get();
  return latest_;
}

Result<std::unique_ptr<HostCommunicator::Prepared>> HostCommunicator::prepare(const Call& call,
                                                                              const CommunicatorOptions& options) {
  auto prepared = std::make_unique<Prepared>();
  const std::uint64_t shape = shape_of(call);
  CallRecord& record = prepared->record;
  record.count = call.count;
  record.signature = mix(call.count * 0x9e3779b97f4a7c15ULL + shape * 31 + options.forced);
  record.root = has_root(call.collective) ? call.root : 0;
  record.collective = static_cast<std::uint8_t>(call.collective);
  record.type = static_cast<std::uint8_t>(call.type);
  record.reduction = static_cast<std::uint8_t>(call.reduction);
  if (call.count == 0) return prepared;

  const Problem problem = problem_of(call, ranks_);
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  // A forced algorithm is for the collectives that have it; that one has was checked when the options were given.
  const bool forced = find(call.collective, options.algorithm) != nullptr;
  const std::string_view named = forced ? std::string_view(options.algorithm) : std::string_view();
  Choice choice = TUTTI_TRY(choose({problem, block_bytes, false, named, options.protocol}));
  const Algorithm* algorithm = find(call.collective, choice.algorithm);
  if (algorithm == nullptr || !algorithm->supports(problem)) {
    return invalid_argument("algorithm '" + std::string(choice.algorithm) + "' does not do " + describe(problem) +
                            "; it takes one of " + names_for(problem));
  }
  prepared->in_place_distance = in_place_distance(call, ranks_, rank_);
  prepared->in_place = call.output - call.input == prepared->in_place_distance;
  Problem mine = problem;
  mine.in_place = prepared->in_place;
  if (choice.mapped) {
    if (!algorithm->supports(mine))
      return invalid_argument("algorithm '" + std::string(choice.algorithm) + "' does not do " + describe(mine) +
                              ": pass another buffer as output, or leave the choice open");
    if (call.reduction == Reduction::pre_mul_sum)
      return unsupported("algorithm '" + std::string(choice.algorithm) +
                         "' reads the peers' buffers, whose factors of a pre-multiplied sum it does not know: take an "
                         "algorithm that is not mapped, or leave the choice open");
    prepared->mapped_algorithm = algorithm;
    prepared->mapped_only = true;
    choice = TUTTI_TRY(choose({problem, block_bytes, false, "", options.protocol}));
    algorithm = find(call.collective, choice.algorithm);
  } else if (!forced && call.reduction != Reduction::pre_mul_sum) {  // Peers' factors are not known here.
    prepared->mapped_algorithm = mapped_algorithm(mine, block_bytes);
  }
  prepared->copy_input = mine.in_place && !algorithm->supports(mine);
  if (prepared->copy_input) mine.in_place = false;
  prepared->plan = TUTTI_TRY(wired_plan({mine, algorithm, choice.lines, block_bytes > choice.piece_bytes}));
  prepared->choice = choice;
  return prepared;
}

Status HostCommunicator::lay_out(const Call& call, const Choice& choice, Prepared& prepared) const {
  const WiredPlan& plan = *prepared.plan;
  const std::uint64_t element = size_of(call.type);
  const std::uint32_t units = plan.compiled->program().units;
  const std::uint64_t block_bytes = call.count * element;
  const std::uint64_t unit_bytes = (call.count + units - 1) / units * element;
  const std::uint64_t granule = std::max(granule_bytes(plan.key.lines), element);
  const std::uint64_t slot = std::min<std::uint64_t>(choice.piece_bytes, plan.slot_bytes);
  const std::uint64_t pieces = slot == 0 ? 1 : pieces_for(unit_bytes, plan.longest_units, slot, granule);
  const std::uint64_t granules = (unit_bytes + granule - 1) / granule;
  const std::uint64_t part_bytes = (granules + pieces - 1) / pieces * granule;
  const bool fits = slot == 0 || plan.longest_units * part_bytes <= plan.slot_bytes;
  if (pieces > kMostPieces || (!fits && !plan.balanced)) {
    return unsupported(std::string(plan.key.algorithm->name()) + " sends messages that do not fit the slots of " +
                       std::to_string(plan.slot_bytes) + " bytes: force no protocol, or another algorithm");
  }
  Launch& launch = prepared.launch;
  launch.element_bytes = static_cast<std::uint32_t>(element);
  launch.input.count = launch.output.count = launch.scratch_blocks.count = call.count;
  launch.loop = choice.loop;
  launch.loop.pieces = static_cast<std::uint32_t>(pieces);
  launch.loop.skew = plan.overlaps && pieces > 1 ? choice.loop.skew : 0;
  launch.cut = {.units = units, .parts = launch.loop.pieces, .granule = static_cast<std::uint32_t>(granule / element)};
  launch.slice_elements = slot == 0 ? call.count * units * ranks_ : plan.slot_bytes / element;
  prepared.scratch_bytes =
      plan.compiled->scratch_units() == 0 ? 0 : (plan.compiled->scratch_units() / units + 1) * block_bytes;
  prepared.input_bytes = input_blocks(problem_of(call, ranks_), rank_) * block_bytes;
  return {};
}

// What does not depend on the buffers is worked out here, once the lanes are there.
Result<std::optional<Rank>> HostCommunicator::awaited_by(const Call& call, Prepared& prepared) {
  if (prepared.plan == nullptr || prepared.interpreter) return std::optional<Rank>();
  const auto awaited = TUTTI_TRY(awaited_by(*prepared.plan));
  if (awaited) return awaited;
  TUTTI_CHECK_OK(lay_out(call, prepared.choice, prepared));
  bind(call, prepared);
  return awaited;
}

void HostCommunicator::bind(const Call& call, Prepared& prepared) const {
  WiredPlan& plan = *prepared.plan;
  FoldArguments arguments;
  arguments.ranks = ranks_;
  const FoldFunction function = find_fold(call.type, reduces(call.collective) ? call.reduction : Reduction::sum);
  plan.memory.reserve(plan.compiled->program().widest);
  prepared.interpreter.emplace(plan.compiled->program(), prepared.launch, CpuMachine(plan.memory, function, arguments),
                               plan.memory.pointers());
  const std::uint64_t output_bytes = output_blocks(plan.key.problem, rank_) * call.count * size_of(call.type);
  prepared.interpreter->machine().stream_output(!prepared.in_place && output_bytes >= kStreamedBytes);
  const bool copies = call.reduction != Reduction::avg && call.reduction != Reduction::pre_mul_sum;
  prepared.straight = straighten(plan.compiled->program(), prepared.launch, copies);
  prepared.launch.straight = prepared.straight.view();
}

Result<HostCommunicator::WiredPlan*> HostCommunicator::wired_plan(const PlanKey& key) {
  for (const auto& known : plans_) {
    if (known->key == key) return known.get();
  }
  std::vector<Plan> plans = emit_plans(*key.algorithm, key.problem);
  for (Plan& plan : plans) fuse(plan);
  fuse_stages(plans);
  // Pieces overlap where lanes have the slots for it, and where there is no scratch that they would share.
  bool overlaps = key.pipelined && plans.front().shape.scratch == 0;
  auto wired = std::make_unique<WiredPlan>();
  if (ranks_ <= kAlwaysVerified || config().verify) {
    auto proof = verify(plans, loop_of(overlaps));
    if (proof.ok() && overlaps && !suffices(proof.value(), loop_of(overlaps))) {
      overlaps = false;
      proof = verify(plans, loop_of(overlaps));
    }
    if (!proof.ok())
      return std::move(proof).status().during("proving " + std::string(key.algorithm->name()) + " for " +
                                              describe(key.problem));
    wired->balanced = proof.value().balanced;
  }
  wired->key = key;
  wired->overlaps = overlaps;
  TUTTI_CHECK_OK(wire(plans, *wired));
  plans_.push_back(std::move(wired));
  return plans_.back().get();
}

Status HostCommunicator::wire(const std::vector<Plan>& plans, WiredPlan& wired) {
  const PlanKey& key = wired.key;
  Loop loop = loop_of(wired.overlaps);
  if (key.lines) loop.slots = 1;
  const Protocol protocol = key.lines ? Protocol::lines : Protocol::bulk;
  const std::vector<LaneUse> uses = lanes_of(plans, rank_, loop);
  std::vector<LaneSpec> specs;
  for (const LaneUse& use : uses) {
    specs.push_back(spec_of(use, rank_, protocol));
    wired.slot_bytes =
        protocol == Protocol::lines ? kLineData * (specs.back().slot_bytes / kLineBytes) : specs.back().slot_bytes;
  }
  wired.longest_units = std::max(longest_message(plans), 1U);  // All ranks cut alike.
  const Plan& mine = plans[rank_];
  std::vector<LaneSpec> all = flags_of(mine);
  all.insert(all.end(), specs.begin(), specs.end());
  for (const LaneSpec& spec : all) TUTTI_CHECK_OK(links_.offer(spec));
  wired.awaited = std::move(all);
  wired.plan = mine;
  wired.uses = uses;
  wired.specs = specs;
  return {};
}

Result<std::optional<Rank>> HostCommunicator::awaited_by(WiredPlan& wired) {
  while (!wired.awaited.empty()) {
    const LaneSpec& spec = wired.awaited.back();
    const bool ready = TUTTI_TRY(links_.ready(spec));
    if (!ready) return std::optional(spec.writer == rank_ ? spec.reader : spec.writer);
    wired.awaited.pop_back();
  }
  if (wired.compiled == nullptr) compile(wired);
  return std::optional<Rank>();
}

void HostCommunicator::compile(WiredPlan& wired) {
  const std::vector<LaneUse>& uses = wired.uses;
  const std::vector<LaneSpec>& specs = wired.specs;
  wired.compiled = std::make_unique<CompiledPlan>(wired.plan, [&](const Operand& operand, bool sends) -> LaneState* {
    const Rank writer = sends ? rank_ : operand.peer;
    const LaneEnd end = sends ? LaneEnd::writer : LaneEnd::reader;
    if (operand.place == Place::flag)
      return links_.end(flag_spec(writer, sends ? operand.peer : rank_, operand.tag), writer, operand.tag, end);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const bool same_way = (uses[i].direction == Direction::sends) == sends;
      if (same_way && uses[i].peer == operand.peer && uses[i].tag == operand.tag)
        return links_.end(specs[i], writer, operand.tag, end);
    }
    return nullptr;
  });
}

HostCommunicator::CallKey HostCommunicator::key_of(const Call& call, const CommunicatorOptions& options) const {
  return {call.count, shape_of(call), options.forced,
          call.output - call.input == in_place_distance(call, ranks_, rank_)};
}

// The question of every call, whether it is like the one before.
bool HostCommunicator::Prepared::serves(const Call& call, std::uint32_t forced) const {
  return key.count == call.count && key.shape == shape_of(call) && key.forced == forced &&
         (call.output - call.input == in_place_distance) == key.in_place;
}

}  // namespace tutti
