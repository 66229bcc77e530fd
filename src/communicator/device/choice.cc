// Selection of the plan of a call, from data that all ranks share.
#include <string>

#include "src/communicator/device/device_communicator.h"
#include "src/communicator/forced.h"

namespace tutti {

// LL and LL128 need data and flag to arrive together in one access. Some paths from GPUs to host memory do not
// guarantee that, so host memory requires Simple, where a counter follows the data. Compressed messages require Simple,
// too: a group of encoded elements is larger than most LL messages.
Result<std::string_view> DeviceCommunicator::protocol_of(const CommunicatorOptions& options,
                                                         CompressionFormat compression) const {
  const bool compressed = compression != CompressionFormat::none;
  if (!peers_.through_host() && !compressed) return std::string_view(options.protocol);
  if (options.protocol.empty() || options.protocol == "Simple") return std::string_view("Simple");
  if (options.protocol != "LL" && options.protocol != "LL128") return std::string_view(options.protocol);
  const std::string why = "protocol '" + options.protocol + "' " +
                          (compressed ? "carries no messages in compression format " + std::string(name(compression))
                                      : "does not go through host memory, as it does between some of these ranks");
  if (!options.nccls_protocol) return unsupported(why + ": take Simple, or leave the choice open");
  warn_of_nccls("NCCL_PROTO", why);
  return std::string_view("Simple");
}

// Uses only data that all ranks share; for windows, the promise of the program.
Result<Query> DeviceCommunicator::query_of(const Call& call, const Problem& problem,
                                           const CommunicatorOptions& options) const {
  const CompressionRequest compression = compression_request(call, options, ranks_);
  const std::string_view protocol = TUTTI_TRY(protocol_of(options, compression.compression));
  const bool knows_factors = call.reduction != Reduction::pre_mul_sum;  // All ranks know all scalars.
  const bool mapped = (peers_.on_one_device() || windows_.windows_of(call).both()) && knows_factors;
  return Query{.problem = problem,
               .block_bytes = call.count * size_of(call.type),
               .mapped = mapped,
               .algorithm = forced_algorithm(options, problem),
               .protocol = protocol,
               .compression = compression.compression,
               .max_relative_error = compression.max_relative_error,
               .type = call.type,
               .network = peers_.network(),
               .thread_blocks = peers_.thread_blocks(),
               .only_rings = rounds_.only_rings,
               .channels = options.channels,
               .lane_channels = peers_.lanes().channels,
               .orders = static_cast<std::uint32_t>(rounds_.each.size()),
               .catalogue = catalogue(problem.collective),
               .machine = &machine_};
}

Result<Choice> DeviceCommunicator::choose_plan(const Call& call, const Query& query) const {
  Choice choice = TUTTI_TRY(choose(query));
  TUTTI_CHECK_OK(check_rounding(query, choice));
  if (!choice.mapped || query.mapped) return choice;
  const bool knows_factors = call.reduction != Reduction::pre_mul_sum;
  return unsupported("algorithm '" + std::string(choice.algorithm) +
                     (knows_factors ? "' works in the peers' buffers, which for this call are neither on one device in "
                                      "this process nor in windows"
                                    : "' reads the peers' buffers, whose factors of a pre-multiplied sum it does not "
                                      "know") +
                     ": take an algorithm that is not mapped, or leave the choice open");
}

Result<double> DeviceCommunicator::predict_us(const Call& call, const CommunicatorOptions& options) {
  TUTTI_CHECK_OK(check_predictable(call));
  if (call.count == 0) return 0.0;
  const Problem problem = TUTTI_TRY(problem_for(call, options));
  const Query query = TUTTI_TRY(query_of(call, problem, options));
  Choice choice = TUTTI_TRY(choose_plan(call, query));
  CallRecord unused;
  const bool advised = TUTTI_TRY(advice_.apply(query, choice, unused));
  if (advised) limit_channels(query, choice);
  return predicted_us(query, choice);
}

// Cached per algorithm and problem. The result is the same on all ranks.
bool DeviceCommunicator::lanes_fit(const Algorithm& algorithm, const Problem& problem,
                                   const RankMapping& rank_mapping) {
  for (const Fit& known : fits_)
    if (known.algorithm == &algorithm && known.problem == problem) return known.fits;
  const bool fits = algorithm.supports(problem) && suits_hosts(algorithm.shape(problem).units, problem) &&
                    tags_of(emit_plans(algorithm, logical(rank_mapping, problem))) <= kMaxLaneTags;
  fits_.push_back({&algorithm, problem, fits});
  return fits;
}

// Returns the problem with its hosts, unless the plan that the tuner chooses needs more lanes than exist. The result is
// the same on all ranks.
Result<Problem> DeviceCommunicator::problem_for(const Call& call, const CommunicatorOptions& options) {
  Problem problem = problem_of(call, ranks_);
  const RankMapping& rank_mapping = rank_mapping_for(problem);
  if (!applies(rank_mapping, problem) && !takes_blocks_along("hierarchical", problem.collective)) return problem;
  problem.groups = rank_mapping.groups;
  if (!forced_algorithm(options, problem).empty()) return problem;
  const Query query = TUTTI_TRY(query_of(call, problem, options));
  const Choice choice = TUTTI_TRY(choose_plan(call, query));
  const Algorithm* algorithm = find(call.collective, choice.algorithm);
  if (!wants_hosts(*algorithm, call.collective)) return problem;
  if (!lanes_fit(*algorithm, problem, rank_mapping)) problem.groups.clear();
  return problem;
}

}  // namespace tutti
