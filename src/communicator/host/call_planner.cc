#include "src/communicator/host/call_planner.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/communicator/call/forced.h"
#include "src/communicator/host/mapped_buffers.h"
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

// Returns the granularity of parts of a unit: cache lines, or words for LL and LL128.
std::uint32_t granule_bytes(Protocol protocol) { return is_small(protocol) ? 8 : kCacheLine; }

}  // namespace

CallPlanner::CallPlanner(Membership& membership)
    : membership_(membership),
      plans_(membership),
      // With GPU memory, calls here are internal ones and not those of the program.
      advice_(membership.options.memory == Memory::host ? membership.options.tuner_plugin : "",
              membership.mesh.hosts()),
      machine_(machine_of(membership.mesh.hosts())) {}

Result<double> CallPlanner::predict_us(const Call& call, const CommunicatorOptions& options) {
  TUTTI_CHECK_OK(check_predictable(call));
  if (call.count == 0) return 0.0;
  Query query = TUTTI_TRY(query_for(call, options));
  Choice choice = TUTTI_TRY(choose(query));
  CallRecord unused;
  const bool advised = TUTTI_TRY(advice_.apply(query, choice, unused));
  if (!advised && query.algorithm.empty() && may_be_mapped(membership_, call)) {
    Query mapped = query;
    mapped.mapped = true;
    mapped.protocol = "";
    const Choice in_place = TUTTI_TRY(choose(mapped));
    if (in_place.mapped) return predicted_us(mapped, in_place);
  }
  return predicted_us(query, choice);
}

CallKey CallPlanner::key_of(const Call& call, const CommunicatorOptions& options) const {
  return {call.count, own_shape_of(call), options.forced,
          call.output - call.input == in_place_distance(call, membership_.ranks, membership_.rank)};
}

Result<Query> CallPlanner::query_for(const Call& call, const CommunicatorOptions& options) const {
  Problem problem = problem_of(call, membership_.ranks);
  const RankMapping& rank_mapping = plans_.rank_mapping_for(problem, options.algorithm);
  if (applies(rank_mapping, problem)) problem.groups = rank_mapping.groups;
  // A forced algorithm applies to the collectives that have it. Its name was checked when the options were set.
  const std::string_view named = forced_algorithm(options, problem);
  if (membership_.spans_hosts && !options.protocol.empty() && options.protocol != "Simple") {
    const std::string why = "protocol '" + options.protocol + "' is for ranks of one host";
    if (!options.nccls_protocol) return unsupported(why + ": use Simple, or leave the protocol unset");
    warn_of_nccls("NCCL_PROTO", why);
  }
  const std::string_view protocol = membership_.spans_hosts ? "Simple" : std::string_view(options.protocol);
  const CompressionRequest compression = compression_request(call, options, membership_.ranks);
  Query query = query_of(problem, call.count * size_of(call.type));
  query.compression = compression.compression;
  query.max_relative_error = compression.max_relative_error;
  query.type = call.type;
  query.machine = &machine_;
  query.algorithm = named;
  query.protocol = protocol;
  query.mapped = named.ends_with("_mapped");
  query.network = membership_.spans_hosts;
  return query;
}

Status CallPlanner::force_mapped(const Call& call, const Algorithm& algorithm, const Problem& mine,
                                 PreparedCall& prepared) const {
  const std::string named = "algorithm '" + std::string(algorithm.name()) + "'";
  if (membership_.spans_hosts)
    return unsupported(named + " works in memory that all ranks can map, and these are on several hosts");
  if (!algorithm.supports(mine))
    return invalid_argument(named + " does not do " + describe(mine) +
                            ": pass another buffer as output, or leave the choice open");
  if (call.reduction == Reduction::pre_mul_sum)
    return unsupported(named +
                       " reads the peers' buffers, whose factors of a pre-multiplied sum it does not know: take an "
                       "algorithm that is not mapped, or leave the choice open");
  prepared.mapped_algorithm = &algorithm;
  prepared.mapped_only = true;
  return {};
}

Result<std::unique_ptr<PreparedCall>> CallPlanner::prepare(const Call& call, const CommunicatorOptions& options,
                                                           const GivenChoices* given) {
  auto prepared = std::make_unique<PreparedCall>();
  prepared->record = record_of(call, options);
  if (call.count == 0) return prepared;

  Query query = TUTTI_TRY(query_for(call, options));
  const Problem problem = query.problem;
  const bool forced = !query.algorithm.empty();
  Choice choice = TUTTI_TRY(given == nullptr ? choose(query) : choose_like(given->lanes, query));
  const bool advised = TUTTI_TRY(advice_.apply(query, choice, prepared->record));
  const Algorithm* algorithm =
      TUTTI_TRY(chosen_algorithm(choice, problem, {plans_.rank_mapping(), membership_.spans_hosts}));
  prepared->in_place_distance = in_place_distance(call, membership_.ranks, membership_.rank);
  prepared->in_place = call.output - call.input == prepared->in_place_distance;
  TUTTI_CHECK_OK(check_rounding(query, choice));
  Problem mine = problem;
  mine.in_place = prepared->in_place;
  if (choice.mapped) {
    TUTTI_CHECK_OK(force_mapped(call, *algorithm, mine, *prepared));
    query.algorithm = "";
    query.mapped = false;
    choice = TUTTI_TRY(choose(query));
    algorithm = find(call.collective, choice.algorithm);
  } else if (!membership_.spans_hosts && !forced && !advised && query.compression == CompressionFormat::none &&
             call.reduction != Reduction::pre_mul_sum) {  // Factors are known only to their own rank.
    query.problem = mine;
    query.protocol = "";
    if (given == nullptr) prepared->mapped_algorithm = mapped_algorithm(query);
    else if (given->mapped != nullptr) prepared->mapped_algorithm = one_that_does(mine, given->mapped->algorithm);
  }
  prepared->corrects = choice.compression != CompressionFormat::none && call.residual != nullptr;
  const Rank self = membership_.rank;
  const bool apart = prepared->corrects && input_blocks(mine, self) != output_blocks(mine, self);
  prepared->copy_input = mine.in_place && (apart || !algorithm->supports(mine));
  if (prepared->copy_input) mine.in_place = false;
  const bool pipelined = message_bytes(query, choice.compression) > choice.chunk_bytes;
  prepared->plan = TUTTI_TRY(plans_.plan({mine, algorithm, choice.protocol, pipelined, choice.compression}));
  prepared->choice = choice;
  trace_choice(self, prepared->record, choice, prepared->mapped_algorithm);
  return prepared;
}

Result<PreparedCall*> CallPlanner::mapped_variant(PreparedCall& prepared, const Call& call, const RankBuffers* peers) {
  if (prepared.mapped == nullptr) {
    Query query = tutti::query_of(prepared.plan->key.problem, call.count * size_of(call.type));
    query.machine = &machine_;
    query.mapped = true;
    query.algorithm = prepared.mapped_algorithm->name();
    const Choice choice = TUTTI_TRY(choose(query));
    auto variant = std::make_unique<PreparedCall>();
    PlanKey key = prepared.plan->key;
    key.algorithm = prepared.mapped_algorithm;
    key.problem.in_place = prepared.in_place;
    key.protocol = Protocol::simple;
    key.compression = CompressionFormat::none;
    key.pipelined = false;
    variant->record = prepared.record;
    variant->in_place = prepared.in_place;
    variant->plan = TUTTI_TRY(plans_.plan(key));
    variant->choice = choice;
    variant->launch.peers = peers;
    prepared.mapped = std::move(variant);
  }
  return prepared.mapped.get();
}

Status CallPlanner::lay_out(const Call& call, PreparedCall& prepared) const {
  const ConnectedPlan& plan = *prepared.plan;
  const SlotLimits limits = {.algorithm = plan.key.algorithm->name(),
                             .units = plan.compiled->program().units,
                             .longest_units = plan.longest_units,
                             .slot_bytes = plan.slot_bytes,
                             .granule_bytes = granule_bytes(plan.key.protocol),
                             .overlaps = plan.overlaps,
                             .balanced = plan.balanced};
  TUTTI_CHECK_OK(cut_call(call, prepared.choice, limits, membership_.ranks, prepared.launch, plan.key.compression));
  if (plan.key.compression != CompressionFormat::none)
    prepared.carried = carried_by(plan.compiled->program(), prepared.launch);
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  prepared.scratch_bytes =
      plan.compiled->scratch_units() == 0 ? 0 : (plan.compiled->scratch_units() / limits.units + 1) * block_bytes;
  prepared.input_bytes = input_blocks(problem_of(call, membership_.ranks), membership_.rank) * block_bytes;
  return {};
}

// Computes everything that does not depend on the buffers, once the lanes are connected.
Result<std::optional<Rank>> CallPlanner::awaited_by(const Call& call, PreparedCall& prepared) {
  if (prepared.plan == nullptr || prepared.interpreter) return std::optional<Rank>();
  const auto awaited = TUTTI_TRY(plans_.awaited_by(*prepared.plan));
  if (awaited) return awaited;
  TUTTI_CHECK_OK(lay_out(call, prepared));
  bind(call, prepared);
  return awaited;
}

void CallPlanner::bind(const Call& call, PreparedCall& prepared) const {
  ConnectedPlan& plan = *prepared.plan;
  FoldArguments arguments;
  arguments.ranks = membership_.ranks;
  arguments.cache_policy = cache_policy();
  const std::uint64_t output_bytes =
      output_blocks(plan.key.problem, membership_.rank) * call.count * size_of(call.type);
  // With two ranks and without streaming, all messages are copied by memcpy(). Other steps may use vector stores.
  if (!reduces(call.collective) && membership_.ranks == 2 && output_bytes < arguments.cache_policy.streamed_bytes)
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
  if (plain && !membership_.spans_hosts && prepared.mapped_algorithm == nullptr)
    prepared.moves = brief(prepared.launch, plan.compiled->program().widest);
}

}  // namespace tutti
