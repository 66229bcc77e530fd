// Prepares calls to run: choice, plan, verification, lanes and layout. Done once per shape of call.
#include <algorithm>
#include <cstdint>
#include <string>

#include "src/base/no_cancellation.h"
#include "src/communicator/forced.h"
#include "src/communicator/host/host_communicator.h"
#include "src/communicator/planning/planning.h"

namespace tutti {
namespace {

constexpr std::uint32_t kCacheLine = 64;
constexpr std::uint64_t kNoBytes = ~std::uint64_t{0};  // Larger than any message.

// Returns the algorithm of this name if it supports the problem; otherwise null.
const Algorithm* one_that_does(const Problem& problem, std::string_view name) {
  const Algorithm* algorithm = find(problem.collective, name);
  return algorithm != nullptr && algorithm->supports(problem) ? algorithm : nullptr;
}

// Returns the algorithm to use if all buffers were mapped; null if lanes are at least as good.
const Algorithm* mapped_algorithm(Query query) {
  query.mapped = true;
  const auto choice = choose(query);
  return choice.ok() && choice.value().mapped ? one_that_does(query.problem, choice.value().algorithm) : nullptr;
}

// `alone` is the same use for lanes with one slot, which stays in the nearest cache. One slot suffices if no message is
// sent before the previous one has been answered.
Slots slots_of(const LaneUse& use, const LaneUse& alone, bool few) {
  if (use.form == LaneForm::one_way) return few ? Slots::several : Slots::most;
  return use == alone ? Slots::one : Slots::several;
}

// Returns the granularity of parts of a unit: cache lines, or words for LL and LL128.
std::uint32_t granule_bytes(Protocol protocol) { return is_small(protocol) ? 8 : kCacheLine; }

}  // namespace

Result<HostCommunicator::Prepared*> HostCommunicator::prepare_call(const Call& call,
                                                                   const CommunicatorOptions& options) {
  const CallKey key = key_of(call, options);
  auto& slot = calls_[mix(key.count * 31 + key.shape * 7 + key.in_place + key.forced) % calls_.size()];
  if (slot == nullptr || !(slot->key == key)) {
    const NoCancellation until_prepared;
    board_.show_cpus(rank_);
    auto fresh =
        TUTTI_TRY(autotunes(call, options) ? prepare_autotuning(call, options) : prepare(call, options, nullptr));
    fresh->key = key;
    if (latest_ == slot.get()) latest_ = nullptr;
    slot = std::move(fresh);
  }
  if (slot->tuned != nullptr) {
    const NoCancellation until_prepared;
    return next_tried(slot, call, options);
  }
  latest_ = slot.get();
  show_ran(*latest_);
  return latest_;
}

Result<Query> HostCommunicator::query_for(const Call& call, const CommunicatorOptions& options) const {
  Problem problem = problem_of(call, ranks_);
  const RankMapping& rank_mapping = rank_mapping_for(problem, options.algorithm);
  if (applies(rank_mapping, problem)) problem.groups = rank_mapping.groups;
  // A forced algorithm applies to the collectives that have it. Its name was checked when the options were set.
  const std::string_view named = forced_algorithm(options, problem);
  if (spans_hosts_ && !options.protocol.empty() && options.protocol != "Simple") {
    const std::string why = "protocol '" + options.protocol + "' is for ranks of one host";
    if (!options.nccls_protocol) return unsupported(why + ": use Simple, or leave the protocol unset");
    warn_of_nccls("NCCL_PROTO", why);
  }
  const std::string_view protocol = spans_hosts_ ? "Simple" : std::string_view(options.protocol);
  const CompressionRequest compression = compression_request(call, options, ranks_);
  Query query = query_of(problem, call.count * size_of(call.type));
  query.compression = compression.compression;
  query.max_relative_error = compression.max_relative_error;
  query.type = call.type;
  query.machine = &machine_;
  query.algorithm = named;
  query.protocol = protocol;
  query.mapped = named.ends_with("_mapped");
  query.network = spans_hosts_;
  return query;
}

bool HostCommunicator::may_be_mapped(const Call& call) const {
  // Factors are known only to their own rank.
  if (spans_hosts_ || call.reduction == Reduction::pre_mul_sum) return false;
  if (one_process_) return true;
  const Problem problem = problem_of(call, ranks_);
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  const std::uint64_t input_bytes = input_blocks(problem, rank_) * block_bytes;
  const std::uint64_t output_bytes = output_blocks(problem, rank_) * block_bytes;
  const Regions& regions = Regions::of_process();
  return (input_bytes == 0 || regions.find(call.input, input_bytes)) &&
         (output_bytes == 0 || regions.find(call.output, output_bytes));
}

Result<double> HostCommunicator::predict_us(const Call& call, const CommunicatorOptions& options) {
  TUTTI_CHECK_OK(check_predictable(call));
  if (call.count == 0) return 0.0;
  Query query = TUTTI_TRY(query_for(call, options));
  Choice choice = TUTTI_TRY(choose(query));
  CallRecord unused;
  const bool advised = TUTTI_TRY(advice_.apply(query, choice, unused));
  if (!advised && query.algorithm.empty() && may_be_mapped(call)) {
    Query mapped = query;
    mapped.mapped = true;
    mapped.protocol = "";
    const Choice in_place = TUTTI_TRY(choose(mapped));
    if (in_place.mapped) return predicted_us(mapped, in_place);
  }
  return predicted_us(query, choice);
}

Result<std::unique_ptr<HostCommunicator::Prepared>> HostCommunicator::prepare(const Call& call,
                                                                              const CommunicatorOptions& options,
                                                                              const Way* way) {
  auto prepared = std::make_unique<Prepared>();
  prepared->record = record_of(call, options);
  if (call.count == 0) return prepared;

  Query query = TUTTI_TRY(query_for(call, options));
  const Problem problem = query.problem;
  const bool forced = !query.algorithm.empty();
  Choice choice = TUTTI_TRY(way == nullptr ? choose(query) : choose_like(way->lanes, query));
  const bool advised = TUTTI_TRY(advice_.apply(query, choice, prepared->record));
  const Algorithm* algorithm = TUTTI_TRY(chosen_algorithm(choice, problem, {rank_mapping_, spans_hosts_}));
  prepared->in_place_distance = in_place_distance(call, ranks_, rank_);
  prepared->in_place = call.output - call.input == prepared->in_place_distance;
  TUTTI_CHECK_OK(check_rounding(query, choice));
  Problem mine = problem;
  mine.in_place = prepared->in_place;
  if (choice.mapped) {
    if (spans_hosts_)
      return unsupported("algorithm '" + std::string(choice.algorithm) +
                         "' works in memory that all ranks can map, and these are on several hosts");
    if (!algorithm->supports(mine))
      return invalid_argument("algorithm '" + std::string(choice.algorithm) + "' does not do " + describe(mine) +
                              ": pass another buffer as output, or leave the choice open");
    if (call.reduction == Reduction::pre_mul_sum)
      return unsupported("algorithm '" + std::string(choice.algorithm) +
                         "' reads the peers' buffers, whose factors of a pre-multiplied sum it does not know: take an "
                         "algorithm that is not mapped, or leave the choice open");
    prepared->mapped_algorithm = algorithm;
    prepared->mapped_only = true;
    query.algorithm = "";
    query.mapped = false;
    choice = TUTTI_TRY(choose(query));
    algorithm = find(call.collective, choice.algorithm);
  } else if (!spans_hosts_ && !forced && !advised && query.compression == CompressionFormat::none &&
             call.reduction != Reduction::pre_mul_sum) {  // Factors are known only to their own rank.
    query.problem = mine;
    query.protocol = "";
    if (way == nullptr) prepared->mapped_algorithm = mapped_algorithm(query);
    else if (way->mapped != nullptr) prepared->mapped_algorithm = one_that_does(mine, way->mapped->algorithm);
  }
  prepared->corrects = choice.compression != CompressionFormat::none && call.residual != nullptr;
  const bool apart = prepared->corrects && input_blocks(mine, rank_) != output_blocks(mine, rank_);
  prepared->copy_input = mine.in_place && (apart || !algorithm->supports(mine));
  if (prepared->copy_input) mine.in_place = false;
  const bool pipelined = message_bytes(query, choice.compression) > choice.chunk_bytes;
  prepared->plan = TUTTI_TRY(connected_plan({mine, algorithm, choice.protocol, pipelined, choice.compression}));
  prepared->choice = choice;
  trace_choice(rank_, prepared->record, choice, prepared->mapped_algorithm);
  return prepared;
}

Status HostCommunicator::lay_out(const Call& call, const Choice& choice, Prepared& prepared) const {
  const ConnectedPlan& plan = *prepared.plan;
  const SlotLimits limits = {.algorithm = plan.key.algorithm->name(),
                             .units = plan.compiled->program().units,
                             .longest_units = plan.longest_units,
                             .slot_bytes = plan.slot_bytes,
                             .granule_bytes = granule_bytes(plan.key.protocol),
                             .overlaps = plan.overlaps,
                             .balanced = plan.balanced};
  TUTTI_CHECK_OK(cut_call(call, choice, limits, ranks_, prepared.launch, plan.key.compression));
  if (plan.key.compression != CompressionFormat::none)
    prepared.carried = carried_by(plan.compiled->program(), prepared.launch);
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  prepared.scratch_bytes =
      plan.compiled->scratch_units() == 0 ? 0 : (plan.compiled->scratch_units() / limits.units + 1) * block_bytes;
  prepared.input_bytes = input_blocks(problem_of(call, ranks_), rank_) * block_bytes;
  return {};
}

// Computes everything that does not depend on the buffers, once the lanes are connected.
Result<std::optional<Rank>> HostCommunicator::awaited_by(const Call& call, Prepared& prepared) {
  if (prepared.plan == nullptr || prepared.interpreter) return std::optional<Rank>();
  const auto awaited = TUTTI_TRY(awaited_by(*prepared.plan));
  if (awaited) return awaited;
  TUTTI_CHECK_OK(lay_out(call, prepared.choice, prepared));
  bind(call, prepared);
  return awaited;
}

void HostCommunicator::bind(const Call& call, Prepared& prepared) const {
  ConnectedPlan& plan = *prepared.plan;
  FoldArguments arguments;
  arguments.ranks = ranks_;
  arguments.cache_policy = cache_policy();
  const std::uint64_t output_bytes = output_blocks(plan.key.problem, rank_) * call.count * size_of(call.type);
  // With two ranks and without streaming, all messages are copied by memcpy(). Other steps may use vector stores.
  if (!reduces(call.collective) && ranks_ == 2 && output_bytes < arguments.cache_policy.streamed_bytes)
    arguments.cache_policy = arguments.cache_policy.of_copies();
  const Reduction reduction = reduces(call.collective) ? call.reduction : Reduction::sum;
  const FoldFunction function = find_fold(call.type, reduction);
  plan.memory.reserve(plan.compiled->program().widest);
  prepared.interpreter.emplace(plan.compiled->program(), prepared.launch, CpuBackend(plan.memory, function, arguments),
                               plan.memory.pointers());
  prepared.interpreter->backend().stream_output(!prepared.in_place &&
                                                output_bytes >= arguments.cache_policy.streamed_bytes);
  prepared.interpreter->backend().fetch_buffers(output_bytes >= arguments.cache_policy.fetched_bytes);
  const bool rounds = plan.key.compression != CompressionFormat::none;
  if (rounds) {
    prepared.compressed_fold.emplace(plan.key.compression, call.type, reduction, rounded_stores_of(call.collective));
    prepared.interpreter->backend().encode(&*prepared.compressed_fold);
  }
  const bool copies = !rounds && call.reduction != Reduction::avg && call.reduction != Reduction::pre_mul_sum;
  prepared.straight = straighten(plan.compiled->program(), prepared.launch,
                                 {.copies = copies,
                                  .stored_back_bytes = rounds ? kNoBytes : arguments.cache_policy.stored_back_bytes,
                                  .stored_back_end_bytes = arguments.cache_policy.stored_back_end_bytes});
  prepared.launch.straight = prepared.straight.view();
  const bool plain = !prepared.copy_input && prepared.scratch_bytes == 0 && call.reduction != Reduction::pre_mul_sum &&
                     prepared.interpreter->backend().plain();
  if (plain && !spans_hosts_ && prepared.mapped_algorithm == nullptr)
    prepared.moves = brief(prepared.launch, plan.compiled->program().widest);
}

// Used only on request until it is measured. Among hierarchical algorithms, only the all-reduce uses more than one
// level. For the others the groups are hosts, and blocks cross the link of each host once.
const RankMapping& HostCommunicator::rank_mapping_for(const Problem& flat, std::string_view named) const {
  const Algorithm* algorithm = find(flat.collective, named);
  if (algorithm == nullptr || by_domains_.groups.empty() || !wants_hosts(*algorithm, flat.collective))
    return rank_mapping_;
  Problem grouped = flat;
  grouped.groups = by_domains_.groups;
  const bool levels = flat.collective == Collective::all_reduce || by_domains_.groups.size() == 1;
  const bool does = levels && applies(by_domains_, flat) && algorithm->supports(grouped);
  return does && suits_hosts(algorithm->shape(grouped).units, grouped) ? by_domains_ : rank_mapping_;
}

Result<HostCommunicator::ConnectedPlan*> HostCommunicator::connected_plan(const PlanKey& key) {
  for (const auto& known : plans_) {
    if (known->key == key) return known.get();
  }
  const bool rounds = key.compression != CompressionFormat::none;
  const bool by_domains = !key.problem.groups.empty() && key.problem.groups == by_domains_.groups;
  const ProvedPlans proved =
      TUTTI_TRY(prove_plans(*key.algorithm, key.problem, key.pipelined, kSimpleSlots,
                            by_domains ? by_domains_ : rank_mapping_, rounds ? Messages::rounded : Messages::exact));
  auto connected = std::make_unique<ConnectedPlan>();
  connected->roundings = key.algorithm->cost_law(key.problem).rounded;
  connected->overlaps = proved.overlaps;
  connected->balanced = proved.balanced;
  connected->key = key;
  TUTTI_CHECK_OK(connect_lanes(proved.plans, *connected));
  plans_.push_back(std::move(connected));
  return plans_.back().get();
}

Status HostCommunicator::connect_lanes(const std::vector<Plan>& plans, ConnectedPlan& connected) {
  const PlanKey& key = connected.key;
  const Protocol protocol = key.protocol;
  Loop loop = loop_of(connected.overlaps, kSimpleSlots);
  const std::vector<LaneUse> uses = lanes_of(plans, rank_, loop);
  loop.slots = 1;
  const std::vector<LaneUse> alone = lanes_of(plans, rank_, loop);
  // More ranks may share cores; with more slots they switch less often.
  const bool few = key.pipelined && ranks_ == 2;
  std::vector<LaneSpec> specs;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const LaneUse& use = uses[i];
    specs.push_back(spec_of(use, rank_, protocol, slots_of(use, alone[i], few && !mesh_.is_remote(use.peer))));
    connected.slot_bytes =
        protocol == Protocol::ll ? kLineData * (specs.back().slot_bytes / kLineBytes) : specs.back().slot_bytes;
  }
  // The maximum over all ranks, so that all ranks cut alike.
  connected.longest_units = std::max(longest_message(plans), 1U);
  const Plan& mine = plans[rank_];
  std::vector<LaneSpec> all = flags_of(mine);
  all.insert(all.end(), specs.begin(), specs.end());
  for (const LaneSpec& spec : all) TUTTI_CHECK_OK(links_.offer(spec));
  connected.awaited = std::move(all);
  connected.plan = mine;
  connected.uses = uses;
  connected.specs = specs;
  return {};
}

Result<std::optional<Rank>> HostCommunicator::awaited_by(ConnectedPlan& connected) {
  while (!connected.awaited.empty()) {
    const LaneSpec& spec = connected.awaited.back();
    const bool ready = TUTTI_TRY(links_.ready(spec));
    if (!ready) return std::optional(spec.writer == rank_ ? spec.reader : spec.writer);
    connected.awaited.pop_back();
  }
  if (connected.compiled == nullptr) compile(connected);
  return std::optional<Rank>();
}

void HostCommunicator::compile(ConnectedPlan& connected) {
  const std::vector<LaneUse>& uses = connected.uses;
  const std::vector<LaneSpec>& specs = connected.specs;
  connected.compiled =
      std::make_unique<CompiledPlan>(connected.plan, [&](const Operand& operand, bool sends) -> LaneState* {
        const Rank writer = sends ? rank_ : operand.peer;
        const LaneEnd end = sends ? LaneEnd::writer : LaneEnd::reader;
        if (operand.space == Space::flag)
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
  return {call.count, own_shape_of(call), options.forced,
          call.output - call.input == in_place_distance(call, ranks_, rank_)};
}

}  // namespace tutti
