#include "src/communicator/device/plan_chooser.h"

#include <algorithm>
#include <string>

#include "src/base/config.h"
#include "src/communicator/autotuning/machine_name.h"
#include "src/communicator/call/forced.h"
#include "src/communicator/planning/lane_specs.h"
#include "src/executor/numeric_reduce.h"
#include "src/executor/thread_block/ll_words.h"

namespace tutti {
namespace {

// Maximum scratch memory of a candidate beyond that of the first choice.
constexpr std::uint64_t kMaxScratchBytes = 1 << 20;

std::uint64_t scratch_bytes(const Algorithm& algorithm, const Query& query) {
  if (accesses_peers(algorithm.name())) return 0;  // Scratch in the staging ring exists.
  const Shape shape = algorithm.shape(query.problem);
  return shape.scratch == 0 ? 0 : (shape.scratch / shape.units + 1) * query.block_bytes;
}

// Returns the name of the machine for results saved on rank 0; see autotuning/machine_name.h.
std::string device_machine_name(const Communicator& control, const PeerSet& peers, const DevicePlanChooser& chooser) {
  const CommunicatorOptions& options = control.options();
  if (options.tune_file.empty() || control.rank() != 0) return "";
  const std::string& name = peers.own_memory().device().traits().name;
  std::string key = options.version + ", " + std::to_string(peers.ranks()) + " ranks on " +
                    model_in_words(name.substr(0, name.find(" (device"))) + (peers.on_one_device() ? "" : " each") +
                    ", " + std::to_string(peers.thread_blocks()) + " thread blocks";
  if (peers.time_sliced()) key += " in turns";  // Means time slices. Tune files contain this text.
  if (peers.through_host()) key += ", by memory of the host";
  if (options.channels > 0) key += ", " + std::to_string(options.channels) + " channels asked for";
  if (options.min_channels > 0) key += ", at least " + std::to_string(options.min_channels) + " channels";
  if (options.max_channels > 0) key += ", at most " + std::to_string(options.max_channels) + " channels";
  if (peers.lanes().channels < kMaxLaneChannels) {
    key += ", lanes on " + std::to_string(peers.lanes().channels) + " channels";
  }
  if (chooser.only_rings()) key += ", along rings";
  return key + ", links " + links_in_words(peers.hosts());
}

}  // namespace

DevicePlanChooser::DevicePlanChooser(const PeerSet& peers, const DeviceWindows& windows)
    : peers_(peers),
      windows_(windows),
      rank_mapping_(rank_mapping_of(peers.hosts().first_ranks())),
      by_rails_(rail_rank_mapping(peers.hosts())),
      rings_(ring_orders(peers.hosts(),
                         std::min({peers.thread_blocks(), peers.lanes().channels_to_all(), kMaxRingOrders}))),
      machine_(machine_of_gpus(peers.hosts())) {}

// ---- Rank orders ----

bool DevicePlanChooser::reorders(std::string_view algorithm, const RankMapping& rank_mapping, const Problem& problem) {
  return applies(rank_mapping, problem) || moves_blocks_with_ranks(algorithm, problem.collective);
}

const RankMapping& DevicePlanChooser::rank_mapping_for(const Problem& problem) const {
  return reorders("hierarchical", by_rails_, problem) ? by_rails_ : rank_mapping_;
}

std::span<const RankMapping> DevicePlanChooser::rank_orders_of(const Algorithm& algorithm,
                                                               const Problem& problem) const {
  return uses_rank_order(algorithm.name()) ? std::span(rings_.each) : std::span(&rank_mapping_for(problem), 1);
}

// ---- Query ----

// Leaves out the hosts if the plan that the tuner chooses for them needs more lanes than exist.
Result<Query> DevicePlanChooser::query_for(const Call& call, const CommunicatorOptions& options) {
  Problem problem = problem_of(call, peers_.ranks());
  const RankMapping& rank_mapping = rank_mapping_for(problem);
  const bool by_hosts = reorders("hierarchical", rank_mapping, problem);
  if (by_hosts) problem.groups = rank_mapping.groups;
  Query query = TUTTI_TRY(query_of(call, problem, options));
  if (by_hosts && query.network) query.on_rails = algorithms_on_rails(query);
  if (!by_hosts || !query.algorithm.empty()) return query;
  const Choice choice = TUTTI_TRY(choose(query));
  const Algorithm* algorithm = find(call.collective, choice.algorithm);
  if (!requires_hosts(*algorithm, call.collective) || lanes_fit(*algorithm, problem)) return query;
  problem.groups.clear();
  return query_of(call, problem, options);
}

// Cached per algorithm and problem. Holds one plan at a time, because those of all ranks can take gigabytes.
const DevicePlanChooser::Fit& DevicePlanChooser::fit_of(const Algorithm& algorithm, const Problem& problem) {
  for (const Fit& known : fits_)
    if (known.algorithm == &algorithm && known.problem == problem) return known;
  Fit fit = {&algorithm, problem, false, RemotePeers::all};
  if (algorithm.supports(problem) && suits_hosts(algorithm.shape(problem).units, problem)) {
    fit.fits = true;
    fit.remote_peers = RemotePeers::partners;
    for (const RankMapping& each : rank_orders_of(algorithm, problem)) {
      const Problem requested = logical(each, problem);
      const bool moves = uses_rank_order(algorithm.name()) || reorders(algorithm.name(), each, problem);
      for (Rank rank = 0; rank < problem.ranks && fit.fits; ++rank) {
        const Plan plan = emit_plan(algorithm, requested, rank);
        fit.fits = tags_of({&plan, 1}) <= kMaxLaneTags;  // The same in all orders.
        const RemotePeers needed = peers_.rails().peers_of({&plan, 1}, moves ? each : RankMapping());
        fit.remote_peers = std::min(fit.remote_peers, fit.fits ? needed : RemotePeers::all);
      }
      if (fit.remote_peers == RemotePeers::all) break;
    }
  }
  return fits_.emplace_back(std::move(fit));
}

SlotSizes DevicePlanChooser::slots_of(const Algorithm& algorithm, const Problem& problem) {
  const LaneBudget& lanes = peers_.lanes();
  if (!peers_.network()) return lanes.slots;
  const bool uses_hosts = requires_hosts(algorithm, problem.collective);
  return lanes.slots_between_hosts(uses_hosts ? fit_of(algorithm, problem).remote_peers : RemotePeers::all);
}

std::vector<std::pair<const Algorithm*, RemotePeers>> DevicePlanChooser::algorithms_on_rails(const Query& query) {
  std::vector<std::pair<const Algorithm*, RemotePeers>> found;
  if (peers_.rails().partners() == 0) return found;
  for (const Algorithm* algorithm : query.catalogue) {
    if (!requires_hosts(*algorithm, query.problem.collective)) continue;
    const RemotePeers peers = fit_of(*algorithm, query.problem).remote_peers;
    if (peers != RemotePeers::all) found.emplace_back(algorithm, peers);
  }
  return found;
}

// Data and flag must arrive together: 8 bytes of LL, 128 of LL128, which PCIe may split. Neither was tested through
// host memory, which therefore requires Simple, where a counter follows the data. Compressed messages require Simple,
// too: a group of encoded elements is larger than most LL messages. Between hosts the choice of the tuner replaces a
// request by NCCL's variable, because LL serves few algorithms there.
Result<std::string_view> DevicePlanChooser::protocol_of(const CommunicatorOptions& options,
                                                        CompressionFormat compression) const {
  const bool compressed = compression != CompressionFormat::none;
  if (!peers_.through_host() && !compressed) return protocol_on_devices(options);
  const bool chooses = peers_.has_remote_ll() && !compressed;
  if (chooses && (options.protocol.empty() || (options.protocol == "LL" && !options.protocol_is_from_nccl)))
    return std::string_view(options.protocol);
  if (options.protocol.empty() || options.protocol == "Simple") return std::string_view("Simple");
  if (options.protocol != "LL" && options.protocol != "LL128") return std::string_view(options.protocol);
  const std::string why =
      "protocol '" + options.protocol + "' " +
      (compressed ? "does not support compression format " + std::string(name(compression))
       : chooses  ? "does not serve " + std::string(options.protocol == "LL" ? "all calls" : "calls") + " between hosts"
                  : "does not work through host memory, which connects some of these ranks");
  if (!options.protocol_is_from_nccl) return unsupported(why + ": use Simple, or do not force a protocol");
  warn_about_nccl_variable("NCCL_PROTO", why);
  return std::string_view(chooses ? "" : "Simple");
}

Result<std::string_view> DevicePlanChooser::protocol_on_devices(const CommunicatorOptions& options) const {
  if (options.protocol != "LL128" || peers_.all_on_nvlink()) return std::string_view(options.protocol);
  const std::string why =
      "protocol 'LL128' needs NVLink between all ranks on different GPUs, because PCIe may split its 128 bytes";
  if (!options.protocol_is_from_nccl) return unsupported(why + ": use LL or Simple, or do not force a protocol");
  warn_about_nccl_variable("NCCL_PROTO", why);
  return std::string_view();
}

// For windows, uses the guarantee of the program that all ranks pass buffers in windows.
Result<Query> DevicePlanChooser::query_of(const Call& call, const Problem& problem,
                                          const CommunicatorOptions& options) const {
  const CompressionRequest compression = compression_request(call, options, peers_.ranks());
  const std::string_view protocol = TUTTI_TRY(protocol_of(options, compression.compression));
  const bool knows_factors = call.reduction != Reduction::pre_mul_sum;  // All ranks know all scalars.
  const bool add = !config().deterministic && switches_add(call.type, call.reduction);
  const bool by_switches = peers_.multicast_ring() != nullptr && (add || !reduces(call.collective)) &&
                           compression.compression == CompressionFormat::none;
  const bool serve_request =
      by_switches && peers_.ring().channels > 0 && peers_.network() == is_staged_over_hosts(options.algorithm);
  const bool mapped = (peers_.on_one_device() || windows_.windows_of(call).both()) && knows_factors;
  Query query{.problem = problem,
              .block_bytes = call.count * size_of(call.type),
              .mapped = mapped,
              .algorithm = forced_algorithm(options, problem, serve_request),
              .protocol = protocol,
              .compression = compression.compression,
              .max_relative_error = compression.max_relative_error,
              .type = call.type,
              .network = peers_.network(),
              .thread_blocks = peers_.thread_blocks(),
              .only_rings = rings_.only_rings,
              .on_nvlinks = !peers_.network() && peers_.all_on_nvlink(),
              .channels = options.channels,
              .min_channels = options.min_channels,
              .max_channels = options.max_channels,
              .lane_channels = peers_.lanes().channels_to_all(),
              .local_channels = peers_.lanes().channels,
              .orders = static_cast<std::uint32_t>(rings_.each.size()),
              .remote_channels = peers_.lanes().fewer_peers,
              .remote_ll_channels = peers_.has_remote_ll() ? peers_.lanes().remote_ll_channels : 0,
              .slot_bytes = peers_.network() ? Query().slot_bytes : peers_.lanes().slots.simple,
              .ll_slot_bytes = ll_words_capacity(peers_.lanes().slots.ll),
              .ring = peers_.ring(),
              .by_switches = by_switches,
              .by_switches_mapped = by_switches && mapped && windows_.all_multicast(),
              .catalogue = catalogue(problem.collective),
              .machine = &machine_};
  if (options.algorithm_is_from_nccl && query.algorithm == kSwitchStaged) query.algorithm = switch_algorithm(query);
  return query;
}

std::string_view DevicePlanChooser::against_copy_engines(const Call& call, const CommunicatorOptions& options) const {
  if (!compression_request(call, options, peers_.ranks()).raw()) return "its messages are compressed";
  if (peers_.on_one_device()) return "all ranks share a GPU";
  if (peers_.spans_hosts()) return "the ranks are on several hosts";
  if (peers_.through_host()) return "some ranks communicate through host memory";
  if (!windows_.windows_of(call).both())
    return "its buffers are not in windows that all ranks have registered with TUTTI_WINDOW_SYMMETRIC";
  return windows_.against_copies();
}

// ---- Candidates ----

Result<std::vector<Candidate>> DevicePlanChooser::candidates_to_tune(const Query& query) {
  std::vector<Candidate> all = TUTTI_TRY(candidates(query));
  if (all.empty() || all.front().choice.compression != CompressionFormat::none) return std::vector<Candidate>();
  const Algorithm& first = *find(query.problem.collective, all.front().choice.algorithm);
  const std::uint64_t max_scratch_bytes = std::max(kMaxScratchBytes, scratch_bytes(first, query));
  const auto refused = [&](const Candidate& candidate) {
    if (candidate.choice.compression != CompressionFormat::none) return true;
    const Algorithm& algorithm = *find(query.problem.collective, candidate.choice.algorithm);
    return !lanes_fit(algorithm, query.problem) || scratch_bytes(algorithm, query) > max_scratch_bytes;
  };
  all.erase(std::remove_if(all.begin() + 1, all.end(), refused), all.end());
  return all;
}

std::unique_ptr<DeviceAutotuning> make_autotuning(const Communicator& control, const PeerSet& peers,
                                                  const DevicePlanChooser& chooser) {
  const CommunicatorOptions& options = control.options();
  if (options.tune == Tune::off || peers.ranks() == 1 || peers.spans_hosts() || options.has_plugin()) return nullptr;
  const auto make_timer = [&device = peers.own_memory().device()] { return device.make_timer(); };
  const std::string machine = device_machine_name(control, peers, chooser);
  auto made = std::make_unique<DeviceAutotuning>(
      options, DeviceAutotuning::Environment{control.board(), control.rank(), make_timer, machine});
  made->publish_saved();
  return made;
}

}  // namespace tutti
