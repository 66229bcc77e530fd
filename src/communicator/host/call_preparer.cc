#include "src/communicator/host/call_preparer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "src/communicator/autotuning/machine_name.h"
#include "src/communicator/call/forced.h"
#include "src/communicator/host/mapped_buffers.h"

namespace tutti {
namespace {

constexpr std::uint64_t kNoBytes = ~std::uint64_t{0};  // Larger than any message.

// Returns the algorithm of this name if it supports the problem; otherwise null.
const Algorithm* one_that_does(const Problem& problem, std::string_view name) {
  const Algorithm* algorithm = find(problem.collective, name);
  return algorithm != nullptr && algorithm->supports(problem) ? algorithm : nullptr;
}

}  // namespace

HostCallPreparer::HostCallPreparer(Membership& membership)
    : membership_(membership),
      machine_(machine_of(membership.mesh.hosts())),
      plans_(membership),
      // With GPU memory, calls here are internal ones and not those of the program.
      planner_(membership.rank, membership.mesh.hosts(),
               membership.options.memory == Memory::host ? membership.options.tuner_plugin : "",
               [this](const Call& call, const CommunicatorOptions& options) { return query_for(call, options); }),
      autotuning_(membership.options, membership.rank,
                  membership.rank == 0 ? machine_name(membership.options, membership.mesh.hosts()) : "") {}

Result<double> HostCallPreparer::predict_us(const Call& call, const CommunicatorOptions& options) {
  return planner_.predict_us(call, options, may_be_mapped(membership_, call));
}

CallKey HostCallPreparer::key_of(const Call& call, const CommunicatorOptions& options) const {
  return {.count = call.count,
          .shape = own_shape_of(call),
          .agreement_hash = options.agreement_hash,
          .in_place = call.output - call.input == in_place_distance(call, membership_.ranks, membership_.rank)};
}

Result<Query> HostCallPreparer::query_for(const Call& call, const CommunicatorOptions& options) const {
  Problem problem = problem_of(call, membership_.ranks);
  const RankMapping& rank_mapping = plans_.rank_mapping_for(problem, options.algorithm);
  if (applies(rank_mapping, problem)) problem.groups = rank_mapping.groups;
  // A forced algorithm applies to the collectives that have it. Its name was checked when the options were set.
  const std::string_view named = forced_algorithm(options, problem, false);
  if (membership_.spans_hosts && !options.protocol.empty() && options.protocol != "Simple") {
    const std::string why = "protocol '" + options.protocol + "' is for ranks of one host";
    if (!options.protocol_is_from_nccl) return unsupported(why + ": use Simple, or leave the protocol unset");
    warn_about_nccl_variable("NCCL_PROTO", why);
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

// With an error bound, the prediction decides about compression, and measurements do not.
Result<HostAutotuning::Class*> HostCallPreparer::class_of(const Call& call, const CommunicatorOptions& options) {
  HostAutotuning::Class* const untuned = nullptr;
  if (!is_tunable(call, options, membership_.ranks)) return untuned;
  Query query = TUTTI_TRY(query_for(call, options));
  const std::vector<Candidate> predicted = TUTTI_TRY(candidates(query));
  if (predicted.empty() || predicted.front().choice.compression != CompressionFormat::none) return untuned;
  query.mapped = !membership_.spans_hosts;
  std::vector<Candidate> all = TUTTI_TRY(candidates(query));
  std::erase_if(all,
                [](const Candidate& candidate) { return candidate.choice.compression != CompressionFormat::none; });
  return &autotuning_.class_of(query, std::move(all));
}

Status HostCallPreparer::check_mapped(const Call& call, const Algorithm& algorithm, const Problem& mine) const {
  const std::string named = "algorithm '" + std::string(algorithm.name()) + "'";
  if (membership_.spans_hosts)
    return unsupported(named + " works in memory that all ranks can map, and these are on several hosts");
  if (!algorithm.supports(mine))
    return invalid_argument(named + " does not support " + describe(mine) +
                            ": pass another buffer as output, or do not force an algorithm");
  if (call.reduction == Reduction::pre_mul_sum)
    return unsupported(named +
                       " reads the peers' buffers, but does not apply their factors of a pre-multiplied sum: use "
                       "an algorithm that is not mapped, or do not force one");
  return {};
}

const Algorithm* HostCallPreparer::mapped_algorithm(const Call& call, const ChosenCall& chosen, const Problem& mine,
                                                    const Trial* given) const {
  if (membership_.spans_hosts || !chosen.query.algorithm.empty() || chosen.advised ||
      chosen.query.compression != CompressionFormat::none ||
      call.reduction == Reduction::pre_mul_sum)  // Factors are known only to their own rank.
    return nullptr;
  if (given != nullptr) return given->mapped ? one_that_does(mine, given->mapped->algorithm) : nullptr;
  Query query = chosen.query;
  query.problem = mine;
  query.protocol = "";
  query.mapped = true;
  const auto choice = choose(query);  // Not mapped if lanes are at least as good.
  return choice.ok() && choice.value().mapped ? one_that_does(mine, choice.value().algorithm) : nullptr;
}

Result<std::unique_ptr<PreparedCall>> HostCallPreparer::prepare_by(const Call& call, const CommunicatorOptions& options,
                                                                   const Trial* given) {
  auto prepared = std::make_unique<PreparedCall>();
  prepared->key = key_of(call, options);
  prepared->in_place_distance = in_place_distance(call, membership_.ranks, membership_.rank);
  prepared->record = record_of(call, options);
  if (call.count == 0) return prepared;

  ChosenCall chosen = TUTTI_TRY(planner_.choose(call, options, given == nullptr ? nullptr : &given->lanes));
  prepared->record = chosen.record;
  Problem mine = chosen.query.problem;
  mine.in_place = prepared->key.in_place;
  const Algorithm* mapped = nullptr;
  auto otherwise = Mappable::Otherwise::lanes;
  if (chosen.choice.mapped) {
    mapped = TUTTI_TRY(planner_.plan(call, chosen)).key.algorithm;
    TUTTI_CHECK_OK(check_mapped(call, *mapped, mine));
    otherwise = Mappable::Otherwise::fails;
    chosen.query.algorithm = "";
    chosen.query.mapped = false;
    chosen.choice = TUTTI_TRY(choose(chosen.query));
  } else if (options.shows_buffers) {
    mapped = mapped_algorithm(call, chosen, mine, given);
  }
  const PlannedCall planned = TUTTI_TRY(planner_.plan(call, chosen));
  ConnectedPlan* plan = TUTTI_TRY(plans_.plan(planned.key));
  auto lanes = std::make_unique<PlanRun>(*plan, chosen.choice);
  lanes->in_place = planned.in_place;
  lanes->copy_input = planned.copies_input;
  lanes->has_residual = planned.has_residual;
  trace_choice(membership_.rank, prepared->record, chosen.choice, mapped);
  if (mapped == nullptr) prepared->run = std::move(lanes);
  else prepared->run.emplace<Mappable>(*mapped, otherwise, std::move(lanes));
  return prepared;
}

Result<PlanRun*> HostCallPreparer::mapped_run(Mappable& mappable, const Call& call, const RankBuffers* peers) {
  if (mappable.mapped == nullptr) {
    PlanKey key = mappable.lanes->plan.key;
    Query query = query_of(key.problem, call.count * size_of(call.type));
    query.machine = &machine_;
    query.mapped = true;
    query.algorithm = mappable.algorithm.name();
    const Choice choice = TUTTI_TRY(choose(query));
    key.algorithm = &mappable.algorithm;
    key.problem.in_place = mappable.lanes->in_place;
    key.protocol = Protocol::simple;
    key.compression = CompressionFormat::none;
    key.pipelined = false;
    ConnectedPlan* plan = TUTTI_TRY(plans_.plan(key));
    auto run = std::make_unique<PlanRun>(*plan, choice);
    run->in_place = key.problem.in_place;
    run->launch.peers = peers;
    mappable.mapped = std::move(run);
  }
  return mappable.mapped.get();
}

Status HostCallPreparer::lay_out(const Call& call, PlanRun& run) const {
  const ConnectedPlan& plan = run.plan;
  TUTTI_CHECK_OK(cut_call(call, run.choice, plan.limits, membership_.ranks, run.launch, plan.key.compression));
  if (plan.key.compression != CompressionFormat::none) run.carried = bytes_sent(plan.compiled->program(), run.launch);
  const std::uint64_t block_bytes = call.count * size_of(call.type);
  run.scratch_bytes =
      plan.compiled->scratch_units() == 0 ? 0 : (plan.compiled->scratch_units() / plan.limits.units + 1) * block_bytes;
  run.input_bytes = input_blocks(problem_of(call, membership_.ranks), membership_.rank) * block_bytes;
  return {};
}

// Computes everything that does not depend on the buffers, once the lanes are connected.
Result<std::optional<Rank>> HostCallPreparer::awaited_by(const Call& call, PlanRun& run) {
  if (run.interpreter) return std::optional<Rank>();
  const auto awaited = TUTTI_TRY(plans_.awaited_by(run.plan));
  if (awaited) return awaited;
  TUTTI_CHECK_OK(lay_out(call, run));
  bind(call, run);
  return awaited;
}

void HostCallPreparer::bind(const Call& call, PlanRun& run) const {
  ConnectedPlan& plan = run.plan;
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
  run.interpreter.emplace(plan.compiled->program(), run.launch, CpuBackend(plan.memory, function, arguments),
                          plan.memory.pointers());
  run.interpreter->backend().stream_output(!run.in_place && output_bytes >= arguments.cache_policy.streamed_bytes);
  run.interpreter->backend().fetch_buffers(output_bytes >= arguments.cache_policy.fetched_bytes);
  const bool rounds = plan.key.compression != CompressionFormat::none;
  if (rounds) {
    run.compressed_fold.emplace(plan.key.compression, call.type, reduction, rounded_stores_of(call.collective));
    run.interpreter->backend().encode(&*run.compressed_fold);
  }
  const bool copies = !rounds && call.reduction != Reduction::avg && call.reduction != Reduction::pre_mul_sum;
  run.straight = straighten(plan.compiled->program(), run.launch,
                            {.copies = copies,
                             .stored_back_bytes = rounds ? kNoBytes : arguments.cache_policy.stored_back_bytes,
                             .stored_back_end_bytes = arguments.cache_policy.stored_back_end_bytes});
  run.launch.straight = run.straight.view();
  const bool plain = !run.copy_input && run.scratch_bytes == 0 && call.reduction != Reduction::pre_mul_sum &&
                     run.interpreter->backend().plain();
  if (plain && !membership_.spans_hosts) run.moves = brief(run.launch, plan.compiled->program().widest);
}

}  // namespace tutti
