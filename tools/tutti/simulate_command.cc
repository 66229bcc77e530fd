#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/model/gpu_kernel.h"
#include "src/tuner/choose.h"
#include "src/tuner/choose_over_hosts.h"
#include "src/tuner/coding.h"
#include "tools/simulator/figures.h"
#include "tools/simulator/simulate.h"
#include "tools/simulator/trace.h"
#include "tools/tutti/call_model.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/like_nccl.h"
#include "tools/tutti/names.h"
#include "tools/tutti/simulate_check.h"
#include "tools/tutti/simulate_networks.h"
#include "tools/tutti/simulate_report.h"
#include "tools/tutti/simulate_request.h"
#include "tools/tutti/write_file.h"

namespace tutti::tool {
namespace {

constexpr std::size_t kMaxTracedRanks = 64;
// With more ranks an algorithm is simulated with the tuner's protocol only.
constexpr Rank kMaxRanksByProtocols = 1024;
constexpr std::uint64_t kManyEvents = 30'000'000;  // Number of events above which a run is reported as long.

class Simulations {
 public:
  Simulations(const SimulateRequest& request, const CallModel& model)
      : request_(request),
        model_(model),
        network_(model.network()),
        costs_(model.costs()),
        on_device_(model.on_devices()),
        between_hosts_(on_device_ && request.kernels == simulator::Kernels::tutti && model.spans_network()),
        problem_(simulator::problem_on(network_, request.collective, request.root)) {}

  // Prepares the requested algorithm, or all algorithms.
  Status prepare() {
    const bool all = request_.algorithm.empty();
    simulator::Limits limits;
    limits.symmetric = request_.symmetric && request_.trace.empty() && request_.jitter == 0;
    limits.program.one_stage = request_.like_nccl;
    if (all) {
      limits.program.max_steps = kMaxStepsOfMany;
      limits.max_events = kMaxEventsOfMany;
    }
    for (const Algorithm* algorithm : catalogue(request_.collective)) {
      if (!all && request_.algorithm != algorithm->name()) continue;
      if (all && (!algorithm->supports(problem_) || !model_.can_map(*algorithm))) continue;
      if (all && request_.like_nccl && !nccl_has(algorithm->name())) continue;
      if (!all) TUTTI_CHECK_OK(check_named(*algorithm));
      const bool refused = requests_compression(request_) && !can_be_compressed(*algorithm);
      if (all && refused) continue;
      if (refused)
        return unsupported(
            std::string(algorithm->name()) +
            " does not support compression: its ranks would end with different bits, or it sends no messages; "
            "choose another with --algorithm");
      if (!model_.can_map(*algorithm))
        return unsupported(
            std::string(algorithm->name()) +
            " accesses memory of peers, but a network connects some of them; choose another with --algorithm");
      Result<simulator::Simulation> made = model_.prepare(*algorithm, problem_, limits);
      if (made.ok())
        simulations_.push_back({algorithm->name(), algorithm, std::move(made).value(), model_.has_orders(*algorithm)});
      else if (!all) return std::move(made).status();
      else left_out_.push_back({algorithm->name()});
    }
    if (request_.like_nccl && (all || request_.algorithm == kNvls)) TUTTI_CHECK_OK(prepare_nvls(limits));
    if (!simulations_.empty()) {
      take_notes();
      return check_trace();
    }
    if (!all && request_.algorithm == kNvls) return invalid_argument("nvls is an algorithm of NCCL; add --like nccl");
    if (!all) return no_such_algorithm(request_.algorithm, request_.collective);
    return unsupported("no algorithm can be simulated quickly for this number of ranks; choose one with --algorithm");
  }

  void take_notes() {
    std::vector<CheckedProgram> programs;
    for (const Prepared& each : simulations_)
      programs.push_back({each.algorithm->name(), &each.simulation.program(), each.ordered});
    notes_ = notes_on(request_, network_, programs);
    if (request_.like_nccl) return;  // Published tables of a rack show NCCL.
    const std::string_view protocol = request_.protocol;
    const Query query = query_of("", "", 1);
    const auto has_ll = [&](const Prepared& each) { return has_ll_over_hosts(query, each.algorithm->name()); };
    if (between_hosts_ && protocol.empty())
      notes_.push_back(std::string(kLlBetweenHosts) + "; --protocol simulates LL and LL128 with all algorithms");
    else if (between_hosts_ && protocol == name(Protocol::ll) && !std::ranges::all_of(simulations_, has_ll))
      notes_.push_back("Tutti rejects calls of other algorithms: " + std::string(kLlBetweenHosts));
    else if (between_hosts_ && protocol == name(Protocol::ll128))
      notes_.emplace_back("Tutti rejects such calls: lanes between hosts have no LL128");
    const std::vector<std::string> on_hosts = notes_on_hosts(network_);
    notes_.insert(notes_.begin(), on_hosts.begin(), on_hosts.end());
  }

  Status check_named(const Algorithm& algorithm) const {
    if (request_.like_nccl) TUTTI_CHECK_OK(check_nccl_has(algorithm.name(), request_.collective));
    if (!accesses_peers(algorithm.name()) || request_.protocol.empty() || request_.protocol == name(Protocol::simple))
      return {};
    return unsupported(std::string(algorithm.name()) + " accesses memory of peers, which does not support " +
                       request_.protocol + "; use " + name(Protocol::simple));
  }

  // Uses NCCL's variant if there is one. Algorithms that were not requested by name may be missing.
  Status prepare_nvls(simulator::Limits limits) {
    const bool all = request_.algorithm.empty();
    Status refused = check_nvls(request_);
    if (!refused.ok()) return all ? Status() : std::move(refused);
    const Algorithm* const plan = plan_of_nvls(request_.collective);
    limits.program.multicast = true;
    Result<simulator::Simulation> made = simulator::Simulation::make(network_, costs_, *plan, problem_, limits);
    if (made.ok()) simulations_.push_back({kNvls, plan, std::move(made).value(), false});
    return made.ok() || all ? Status() : std::move(made).status();
  }

  Result<std::vector<SimulatedRun>> run(double bytes) {
    std::vector<SimulatedRun> runs;
    double min_us = 0;
    const std::vector<Candidate> candidates = TUTTI_TRY(candidates_of(bytes));
    for (const Candidate& candidate : candidates) {
      simulator::Call call = candidate.call;
      std::vector<simulator::TraceEvent> trace;
      if (!request_.trace.empty()) call.trace = &trace;
      if (candidate.events > kManyEvents)
        std::fprintf(stderr, "tutti: simulating %s, up to %.0f million events; this takes long\n",
                     candidate.name().c_str(), static_cast<double>(candidate.events) * 1e-6);
      const auto begin = std::chrono::steady_clock::now();
      Result<simulator::Outcome> outcome = candidate.simulation->run(call);
      if (!outcome.ok()) {
        if (simulations_.size() == 1) return std::move(outcome).status();
        failed_.insert(candidate.name() + ": " + std::move(outcome).status().message());
        continue;
      }
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      call.trace = nullptr;
      if (min_us == 0 || outcome.value().time_us < min_us) {
        min_us = outcome.value().time_us;
        traced_ = std::move(trace);
      }
      runs.push_back({std::string(candidate.shown), call, std::move(outcome).value(), seconds.count()});
      runs.back().outcome.notes.insert(runs.back().outcome.notes.begin(), notes_.begin(), notes_.end());
      if (!model_.note().empty() && !requires_hosts(*candidate.algorithm, request_.collective))
        runs.back().outcome.notes.push_back(model_.note());
      if (request_.like_nccl && request_.algorithm.empty())
        runs.back().outcome.notes.push_back(
            "algorithms and protocols are the choices of NCCL's model, which are not always the fastest");
      if (candidate.shown == kNvls)
        runs.back().outcome.notes.push_back(
            std::string("nvls is the plan of ") + std::string(candidate.algorithm->name()) +
            " with reductions and broadcasts in switches, as in NCCL's kernels; Tutti does not implement it");
    }
    if (runs.empty()) return internal_error("simulation of every algorithm failed: " + *failed_.begin());
    std::stable_sort(runs.begin(), runs.end(), [](const SimulatedRun& a, const SimulatedRun& b) {
      return a.outcome.time_us < b.outcome.time_us;
    });
    if (request_.bytes.size() == 1) TUTTI_CHECK_OK(compare_with_choice(runs, bytes));
    return runs;
  }

  const std::vector<LeftOut>& left_out() const { return left_out_; }
  // "ring with Simple: reason", once for all sizes.
  const std::set<std::string>& failed() const { return failed_; }
  // Trace of the best run.
  const std::vector<simulator::TraceEvent>& traced() const { return traced_; }

 private:
  struct Prepared {
    std::string_view shown;  // The algorithm's name, or NCCL's.
    const Algorithm* algorithm = nullptr;
    simulator::Simulation simulation;
    bool ordered = false;  // Channels use different orders of ranks.
  };
  struct Candidate {
    std::string_view shown;
    const Algorithm* algorithm = nullptr;
    const simulator::Simulation* simulation = nullptr;
    simulator::Call call;
    std::uint64_t events = 0;

    std::string name() const { return words_of(shown, call); }
  };

  // Candidates that do not take too long to simulate; the fastest one if all do.
  Result<std::vector<Candidate>> candidates_of(double bytes) {
    std::vector<Candidate> candidates;
    for (const auto& [shown, algorithm, simulation, ordered] : simulations_) {
      const std::vector<std::string_view> wanted = TUTTI_TRY(protocols(*algorithm, bytes));
      for (const std::string_view protocol : wanted) {
        for (const CompressionFormat compression : formats(*algorithm, protocol)) {
          simulator::Call call = TUTTI_TRY(call_of(*algorithm, protocol, compression, bytes));
          if (shown == kNvls) cut_as_nvls(call, network_);
          override(call);
          if (call.compression != compression && request_.compression.empty())
            continue;  // The format saves nothing, and raw is a candidate.
          candidates.push_back({shown, algorithm, &simulation, call, simulation.events_of(call)});
        }
      }
    }
    if (!request_.algorithm.empty()) return candidates;
    if (request_.like_nccl) {
      const std::string_view chosen = TUTTI_TRY(nccl_algorithm(network_, request_.collective, bytes));
      const auto is_chosen = [&](const Candidate& candidate) { return candidate.shown == chosen; };
      if (std::any_of(candidates.begin(), candidates.end(), is_chosen))
        std::erase_if(candidates, std::not_fn(is_chosen));
    }
    const auto fewer = [](const Candidate& a, const Candidate& b) { return a.events < b.events; };
    const std::uint64_t fewest = std::min_element(candidates.begin(), candidates.end(), fewer)->events;
    std::erase_if(candidates, [&](const Candidate& candidate) {
      const bool out = candidate.events > std::max(kMaxEventsCompared, fewest);
      if (out) leave_out(candidate.name(), bytes);
      return out;
    });
    return candidates;
  }

  // Adds a note to the fastest run if the library would choose another algorithm, protocol or format.
  Status compare_with_choice(std::vector<SimulatedRun>& runs, double bytes) const {
    if (!on_device_ || request_.like_nccl || !request_.algorithm.empty() || requests_compression(request_)) return {};
    Query query = query_of("", request_.protocol, bytes);
    query.max_relative_error = request_.max_relative_error;
    const auto serves = [&](const Algorithm* each) {
      return has_protocol_over_hosts(query, each->name(), request_.protocol == "LL" ? Protocol::ll : Protocol::ll128);
    };
    const bool forces = !request_.protocol.empty() && request_.protocol != name(Protocol::simple);
    if (between_hosts_ && forces && std::ranges::none_of(query.catalogue, serves)) return {};
    Machine machine = network_.machine(costs_);
    if (request_.kernels == simulator::Kernels::tutti) set_gpu_kernel(machine.costs);  // It counts messages, not steps.
    query.machine = &machine;
    const Choice choice = TUTTI_TRY(choose(query));
    const auto is_choice = [&](const SimulatedRun& run) {
      return run.algorithm == choice.algorithm && run.call.protocol == choice.protocol &&
             run.call.compression == choice.compression;
    };
    if (is_choice(runs.front())) return {};
    std::string note =
        "for private buffers, Tutti would choose " + words_of(choice.algorithm, model_.call_of(choice, bytes));
    const auto run = std::find_if(runs.begin(), runs.end(), is_choice);
    if (run != runs.end()) {
      char time[64];
      std::snprintf(time, sizeof time, ", which takes %.2f us", run->outcome.time_us);
      note += time;
    }
    runs.front().outcome.notes.push_back(note + " (from a table of estimates for GPUs)");
    return {};
  }

  void leave_out(const std::string& what, double bytes) {
    const auto same = [&](const LeftOut& other) { return other.what == what; };
    const auto found = std::find_if(left_out_.begin(), left_out_.end(), same);
    if (found == left_out_.end()) left_out_.push_back({what, bytes});
    else found->from_bytes = std::min(found->from_bytes, bytes);
  }

  // Each order of ranks has its own row for each rank.
  Status check_trace() const {
    if (request_.trace.empty()) return {};
    const Rank rows = network_.ranks() * simulations_.front().simulation.program().orders;
    if (rows <= kMaxTracedRanks) return {};
    return invalid_argument("--trace shows at most " + std::to_string(kMaxTracedRanks) + " ranks, not " +
                            std::to_string(rows) +
                            (rows > network_.ranks() ? " (each rank counts once per ring; reduce --rings)" : ""));
  }

  bool can_be_compressed(const Algorithm& algorithm) const {
    return !accesses_peers(algorithm.name()) && algorithm.supports_compression(problem_);
  }

  // On GPUs compressed messages use Simple. An empty protocol is the tuner's choice.
  std::vector<CompressionFormat> formats(const Algorithm& algorithm, std::string_view protocol) const {
    if (!request_.compression.empty()) return {parse_compression(request_.compression).value()};
    std::vector<CompressionFormat> all = {CompressionFormat::none};
    const bool simple = !on_device_ || protocol == "Simple" || protocol.empty();
    if (request_.max_relative_error == 0 || !simple || !can_be_compressed(algorithm)) return all;
    const CostLaw cost_law = algorithm.cost_law(problem_);
    for (const CompressionFormat format : kBoundedFormats)
      if (keeps_to(request_.max_relative_error, format, cost_law)) all.push_back(format);
    return all;
  }

  Result<std::vector<std::string_view>> protocols(const Algorithm& algorithm, double bytes) const {
    using Names = std::vector<std::string_view>;
    if (accesses_peers(algorithm.name())) {
      const bool suits = request_.protocol.empty() || request_.protocol == name(Protocol::simple);
      return suits ? Names{"Simple"} : Names{};
    }
    if (!request_.protocol.empty()) return Names{request_.protocol};
    if (on_device_ && is_compressed(algorithm, bytes)) return Names{"Simple"};
    if (!on_device_ || network_.ranks() > kMaxRanksByProtocols) return Names{""};
    const bool ll = has_ll_over_hosts(query_of(algorithm.name(), "", bytes), algorithm.name());
    if (!request_.like_nccl && between_hosts_) return ll ? Names{"LL", "Simple"} : Names{"Simple"};
    if (!request_.like_nccl) return Names{"LL", "LL128", "Simple"};
    return Names{name(TUTTI_TRY(nccl_protocol(network_, request_.collective, bytes)))};
  }

  Query query_of(std::string_view algorithm, std::string_view protocol, double bytes) const {
    Query query = model_.query_of(problem_, bytes);
    query.algorithm = algorithm;
    query.protocol = protocol;
    query.type = request_.type;
    if (on_device_) query.catalogue = catalogue(request_.collective);
    return query;
  }

  // True if calls of this size use the requested compression. Small messages may not become shorter.
  bool is_compressed(const Algorithm& algorithm, double bytes) const {
    if (!requests_compression(request_)) return false;
    const Query query = query_of(algorithm.name(), "", bytes);
    return message_bytes(query, parse_compression(request_.compression).value()) < query.block_bytes;
  }

  Result<simulator::Call> call_of(const Algorithm& algorithm, std::string_view protocol, CompressionFormat compression,
                                  double bytes) {
    Query query = query_of(algorithm.name(), protocol, bytes);
    if (message_bytes(query, compression) < query.block_bytes) query.compression = compression;  // As calls do.
    simulator::Call call = model_.call_of(TUTTI_TRY(choose(query)), bytes);
    call.type = request_.type;
    call.launch = request_.launch;
    if (on_device_ && request_.like_nccl) cut(call, costs_, request_.collective, network_.ranks());
    call.jitter = request_.jitter;
    call.seed = request_.seed;
    return call;
  }
  // Requested values override the defaults.
  void override(simulator::Call& call) const {
    if (request_.channels > 0) call.channels = request_.channels;
    if (request_.chunk_bytes > 0) call.chunk_bytes = request_.chunk_bytes;
    if (request_.slots > 0) call.loop.slots = request_.slots;
  }

  const SimulateRequest& request_;
  const CallModel& model_;
  const simulator::Network& network_;
  const simulator::Costs& costs_;
  const bool on_device_;
  const bool between_hosts_;  // Tutti has LL for few algorithms, and no LL128.
  const Problem problem_;
  std::vector<Prepared> simulations_;
  std::vector<simulator::TraceEvent> traced_;
  std::vector<LeftOut> left_out_;
  std::set<std::string> failed_;
  std::vector<std::string> notes_;
};

}  // namespace

Status simulate_command(int argc, char** argv) {
  const SimulateRequest request = TUTTI_TRY(parse_simulate(argc, argv));
  Networks networks = TUTTI_TRY(networks_of(request));
  simulator::Costs costs = TUTTI_TRY(simulator::costs_of(networks.own.cluster().host, request.kernels));
  for (const auto& [figure, value] : request.figures) TUTTI_CHECK_OK(simulator::set_figure(costs, figure, value));
  TUTTI_CHECK_OK(check_on(request, networks.own, costs));
  if (!request.trace.empty()) TUTTI_CHECK_OK(check_can_write(request.trace));
  // A call has at most as many orders of ranks as channels.
  const std::uint32_t orders = request.channels > 0 ? std::min(request.channels, request.rings) : request.rings;
  const CallModel model(std::move(networks), costs, orders);
  const simulator::Network& network = model.network();
  Simulations simulations(request, model);
  if (network.ranks() > kMaxRanksCompared)
    std::fprintf(stderr, "tutti: making plans for %u ranks; this may take minutes\n", network.ranks());
  TUTTI_CHECK_OK(simulations.prepare());
  std::vector<std::vector<SimulatedRun>> sizes;
  if (!request.json) begin_report(request, network, costs);
  for (const double bytes : request.bytes) {
    std::vector<SimulatedRun> runs = TUTTI_TRY(simulations.run(bytes));
    if (!request.json) report(request, runs);
    sizes.push_back(std::move(runs));
  }
  if (request.json) report_json(request, network, sizes, {simulations.left_out(), simulations.failed()});
  else end_report(sizes, {simulations.left_out(), simulations.failed()});
  if (request.trace.empty()) return {};
  if (!request.json)
    std::printf("# %s shows %s\n", request.trace.c_str(), words_of(sizes[0][0].algorithm, sizes[0][0].call).c_str());
  return write_file(request.trace, simulator::chrome_trace(simulations.traced(), network));
}

}  // namespace tutti::tool
