#include "tools/tutti/nccl_times.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "algorithms/catalogue.h"
#include "tools/simulator/figures.h"
#include "tools/tutti/like_nccl.h"

namespace tutti::tool {
namespace {

constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

constexpr std::string_view kSglang = "github.com/sgl-project/sglang/pull/22734, 8 H200, in a graph";
constexpr std::string_view kVllm = "github.com/vllm-project/vllm/pull/42324, 8 H100, in a graph";
constexpr std::string_view kStasOfHopper = "github.com/stas00/ml-engineering, 8 H200, NCCL 2.27.7, NVLS";
constexpr std::string_view kStasOfBlackwell = "github.com/stas00/ml-engineering, 8 B200, NVLS";
constexpr std::string_view kSpectrum =
    "\"Spectrum-X Host Configuration on OpenShift\", 2 hosts of 8 H200, NCCL 2.30.4, not in a graph";

// Also in tests/simulator/tables.
constexpr PublishedTime kPublished[] = {
    {90, 1, 8, 2 * kKiB, 16.84, kSglang},
    {90, 1, 8, 4 * kKiB, 16.99, kSglang},
    {90, 1, 8, 8 * kKiB, 17.23, kSglang},
    {90, 1, 8, 16 * kKiB, 17.75, kSglang},
    {90, 1, 8, 32 * kKiB, 19.63, kSglang},
    {90, 1, 8, 64 * kKiB, 19.92, kSglang},
    {90, 1, 8, 128 * kKiB, 20.13, kSglang},
    {90, 1, 8, 256 * kKiB, 20.31, kSglang},
    {90, 1, 8, 512 * kKiB, 24, kVllm},
    {90, 1, 8, 1 * kMiB, 25, kVllm},
    {90, 1, 8, 2 * kMiB, 37, kVllm},
    {90, 1, 8, 4 * kMiB, 50, kVllm},
    {90, 1, 8, 8 * kMiB, 76, kVllm},
    {90, 1, 8, 16 * kMiB, 121, kVllm},
    {90, 1, 8, 32 * kMiB, 195, kVllm},
    {90, 1, 8, 64 * kMiB, 316, kVllm},
    {90, 1, 8, 128 * kMiB, 561, kVllm},
    {90, 1, 8, 8 * kGiB, 31780, kStasOfHopper},
    {90, 1, 8, 16 * kGiB, 62630, kStasOfHopper},
    {100, 1, 8, 8 * kGiB, 17940, kStasOfBlackwell},
    {90, 2, 16, 1 * kKiB, 43.74, kSpectrum},
    {90, 2, 16, 2 * kKiB, 43.7, kSpectrum},
    {90, 2, 16, 4 * kKiB, 43.51, kSpectrum},
    {90, 2, 16, 8 * kKiB, 47.41, kSpectrum},
    {90, 2, 16, 16 * kKiB, 53.65, kSpectrum},
    {90, 2, 16, 32 * kKiB, 64.93, kSpectrum},
    {90, 2, 16, 64 * kKiB, 65.48, kSpectrum},
    {90, 2, 16, 128 * kKiB, 81.24, kSpectrum},
    {90, 2, 16, 256 * kKiB, 63.42, kSpectrum},
    {90, 2, 16, 512 * kKiB, 79.93, kSpectrum},
    {90, 2, 16, 1 * kMiB, 76.86, kSpectrum},
    {90, 2, 16, 2 * kMiB, 86.03, kSpectrum},
    {90, 2, 16, 4 * kMiB, 105.58, kSpectrum},
    {90, 2, 16, 8 * kMiB, 149.06, kSpectrum},
    {90, 2, 16, 16 * kMiB, 207.61, kSpectrum},
    {90, 2, 16, 32 * kMiB, 276.88, kSpectrum},
    {90, 2, 16, 64 * kMiB, 460.78, kSpectrum},
    {90, 2, 16, 128 * kMiB, 742.13, kSpectrum},
    {90, 2, 16, 256 * kMiB, 1275.21, kSpectrum},
    {90, 2, 16, 512 * kMiB, 2322.37, kSpectrum},
    {90, 2, 16, 1 * kGiB, 4385.35, kSpectrum},
    {90, 2, 16, 2 * kGiB, 8497.37, kSpectrum},
    {90, 2, 16, 4 * kGiB, 16715.2, kSpectrum},
    {90, 2, 16, 8 * kGiB, 33169.3, kSpectrum},
    {90, 2, 16, 16 * kGiB, 66326.9, kSpectrum},
};

double port_gbytes_per_s_of_gpu(const Topology& host) {
  double sum = 0;
  for (const NodeId port : host.all(NodeKind::nic)) sum += host.nodes[port].gbytes_per_s;
  return sum / static_cast<double>(host.all(NodeKind::gpu).size());
}

}  // namespace

const PublishedTime* published_nccl_time(const simulator::Network& network, Collective collective, double bytes) {
  constexpr double kPortGbytesPerS = 50;
  const simulator::Cluster& cluster = network.cluster();
  const Topology& host = cluster.host;
  const bool suits = cluster.hosts == 1 ||
                     (network.hosts_per_nvlink_domain() == 1 && port_gbytes_per_s_of_gpu(host) == kPortGbytesPerS);
  if (collective != Collective::all_reduce || !network.one_island() || !suits) return nullptr;
  const std::uint32_t sm = host.nodes[host.all(NodeKind::gpu).front()].sm;
  const auto* const found = std::find_if(std::begin(kPublished), std::end(kPublished), [&](const PublishedTime& each) {
    return each.sm == sm && each.hosts == cluster.hosts && each.ranks == network.ranks() && each.bytes == bytes;
  });
  return found == std::end(kPublished) ? nullptr : found;
}

NcclTimes::NcclTimes(const CallModel& model)
    : costs_(simulator::costs_of(model.network().cluster().host, simulator::Kernels::nccl).value()),
      model_(model.networks(), costs_, kMaxRingOrders) {}

Result<const simulator::Simulation*> NcclTimes::simulation_of(std::string_view algorithm, const Problem& problem) {
  const auto known = simulations_.find(algorithm);
  if (known != simulations_.end()) return &known->second;
  simulator::Limits limits;
  limits.program.one_stage = true;
  limits.program.multicast = algorithm == kNvls;
  simulator::Simulation made =
      TUTTI_TRY(algorithm == kNvls ? simulator::Simulation::make(model_.network(), costs_,
                                                                 *plan_of_nvls(problem.collective), problem, limits)
                                   : model_.prepare(*find(problem.collective, algorithm), problem, limits));
  return &simulations_.emplace(algorithm, std::move(made)).first->second;
}

Result<double> NcclTimes::simulate(const Problem& problem, double bytes) {
  const simulator::Network& network = model_.network();
  if (network.cluster().hosts > 1 && !network.switched())
    return unsupported("NCCL's choice between hosts is not modeled");
  const std::string_view algorithm = TUTTI_TRY(nccl_algorithm(network, problem.collective, bytes));
  const simulator::Simulation* const simulation = TUTTI_TRY(simulation_of(algorithm, problem));
  Query query = model_.query_of(problem, bytes);
  const bool nvls = algorithm == kNvls;
  query.algorithm = nvls ? plan_of_nvls(problem.collective)->name() : algorithm;
  const Protocol protocol = TUTTI_TRY(nccl_protocol(network, problem.collective, bytes));
  query.protocol = name(nvls ? Protocol::simple : protocol);
  simulator::Call call = model_.call_of(choose_for_gpus(query), bytes);
  call.launch = simulator::LaunchMode::graph;
  simulator::cut(call, costs_, problem.collective, network.ranks());
  if (nvls) cut_as_nvls(call, network);
  const simulator::Outcome outcome = TUTTI_TRY(simulation->run(call));
  return outcome.time_us;
}

}  // namespace tutti::tool
