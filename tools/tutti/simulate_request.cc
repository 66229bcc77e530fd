#include "tools/tutti/simulate_request.h"

#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "src/communicator/forced.h"
#include "src/compression/format.h"
#include "src/tuner/choose.h"
#include "src/tuner/rings.h"
#include "tools/tutti/given.h"
#include "tools/tutti/request.h"

namespace tutti::tool {

const char* const kSimulateUsage =
    "tutti simulate --topology dgx-h100 --hosts 2048 --collective all_reduce --bytes 1G\n"
    "How long a collective would take, by the plans that would be run. The topology is a system that is sold as one\n"
    "(tutti topo --preset) or a file that tutti topo --file reads; hosts are taken to be alike.\n"
    "  --topology T            what a host is, or the hosts of a rack\n"
    "  --hosts N               how many (1, or those of the rack)\n"
    "  --ranks-per-host N      (one for each GPU)\n"
    "  --gpu MODEL             where the topology does not say what its GPUs are\n"
    "  --rails N               network ports of a host that are used (all)\n"
    "  --tiers N               of switches between hosts, 1 to 3 (2)\n"
    "  --hosts-per-leaf N      (32)\n"
    "  --oversubscription X    what hosts send to a leaf switch over what that sends on (1)\n"
    "  --slow HOST:LINK=X      what is left of a link: host3:mlx5_0=0.5, host0:gpu1=0.9; may be repeated\n"
    "  --fail HOST:PORT        a network port that has failed: host3:mlx5_0; may be repeated\n"
    "  --collective C          all_reduce and so on (all_reduce)\n"
    "  --root R                (0)\n"
    "  --bytes B               1G, or 8..16G for all powers of two between; as nccl-tests count\n"
    "  --algorithm A           (all: the best of those that can be simulated soon is named; what calls would run as "
    "is\n"
    "                          what tutti explain --topology predicts to be best)\n"
    "  --protocol P            LL, Simple or LL128 (the best; in peers' memory Simple)\n"
    "  --compress F                what messages are rounded to: bf16, int8 and so on (raw)\n"
    "  --max-relative-error X  instead: the best of raw and the formats that are expected to keep to it\n"
    "  --type T                float32, float16 or bfloat16, of what is rounded (float32)\n"
    "  --like nccl             algorithms and protocols as NCCL chooses them, nvls among them, which switches make of "
    "a "
    "plan\n"
    "                          in peers' memory; a piece after the other through all stages, as it loops; of GPUs of "
    "one\n"
    "                          host or joined by NVSwitches, to be compared with its times (as Tutti does)\n"
    "  --channels N  --chunk B  --slots N    (as the library does that was measured)\n"
    "  --launch MODE           eager, eager-many or graph (eager)\n"
    "  --figure NAME=X         one of the costs in docs/design/simulator.md: hop_us.network.Simple=10; may be "
    "repeated\n"
    "  --jitter X  --seed N    steps and latencies grow by an exponentially distributed part of mean X (0)\n"
    "  --rings N               of ranks, along what joins the GPUs of a host, that channels have in turns, where ranks "
    "only\n"
    "                          speak to those before and behind them, and of trees of hosts (8); 0: one, as numbered\n"
    "  --unfolded              each rank is simulated, also those that do the same as others\n"
    "  --trace FILE            what happened when in the best run, for chrome://tracing or ui.perfetto.dev\n"
    "  --json                  instead of text\n";

namespace {

enum Option {
  kTopology,
  kHosts,
  kRanksPerHost,
  kGpu,
  kRails,
  kTiers,
  kHostsPerLeaf,
  kOversubscription,
  kSlow,
  kFail,
  kCollective,
  kRoot,
  kBytes,
  kAlgorithm,
  kProtocol,
  kCompress,
  kMaxRelativeError,
  kType,
  kLike,
  kChannels,
  kChunk,
  kSlots,
  kLaunch,
  kFigure,
  kJitter,
  kSeed,
  kRings,
  kUnfolded,
  kTrace,
  kJson,
  kHelp
};

constexpr option kOptions[] = {
    {"topology", required_argument, nullptr, kTopology},
    {"hosts", required_argument, nullptr, kHosts},
    {"ranks-per-host", required_argument, nullptr, kRanksPerHost},
    {"gpu", required_argument, nullptr, kGpu},
    {"rails", required_argument, nullptr, kRails},
    {"tiers", required_argument, nullptr, kTiers},
    {"hosts-per-leaf", required_argument, nullptr, kHostsPerLeaf},
    {"oversubscription", required_argument, nullptr, kOversubscription},
    {"slow", required_argument, nullptr, kSlow},
    {"fail", required_argument, nullptr, kFail},
    {"collective", required_argument, nullptr, kCollective},
    {"root", required_argument, nullptr, kRoot},
    {"bytes", required_argument, nullptr, kBytes},
    {"algorithm", required_argument, nullptr, kAlgorithm},
    {"protocol", required_argument, nullptr, kProtocol},
    {"wire", required_argument, nullptr, kCompress},
    {"max-relative-error", required_argument, nullptr, kMaxRelativeError},
    {"type", required_argument, nullptr, kType},
    {"like", required_argument, nullptr, kLike},
    {"channels", required_argument, nullptr, kChannels},
    {"chunk", required_argument, nullptr, kChunk},
    {"slots", required_argument, nullptr, kSlots},
    {"launch", required_argument, nullptr, kLaunch},
    {"figure", required_argument, nullptr, kFigure},
    {"jitter", required_argument, nullptr, kJitter},
    {"seed", required_argument, nullptr, kSeed},
    {"rings", required_argument, nullptr, kRings},
    {"unfolded", no_argument, nullptr, kUnfolded},
    {"trace", required_argument, nullptr, kTrace},
    {"json", no_argument, nullptr, kJson},
    {"help", no_argument, nullptr, kHelp},
    {},
};

constexpr double kMaxBytes = 1e15;
constexpr std::uint32_t kMaxCount = 1U << 24;
constexpr std::uint32_t kMinSlots = 2;  // That a ring of two stages needs.
constexpr std::uint32_t kMaxSlots = 1024;
constexpr std::uint32_t kMaxTiers = 3;
constexpr double kMinLeft = 0.001;

Result<double> parse_real(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || end != text.end() || !(value >= 0 && value <= kMaxBytes))
    return invalid_argument("'" + std::string(text) + "' is no number from 0 to 1e15");
  return value;
}

Result<std::vector<double>> parse_sizes(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    Result<double> one = parse_bytes(text);
    if (one.ok()) return std::vector<double>{one.value()};
    return invalid_argument(std::move(one).status().message() + "; or a range: 8..16G, for all powers of two between");
  }
  const Result<double> from = parse_bytes(text.substr(0, dots)), to = parse_bytes(text.substr(dots + 2));
  if (!from.ok() || !to.ok())
    return invalid_argument("'" + std::string(text) + "' is no range: it has a size at each end, as 8..16G");
  const double first = from.value(), last = to.value();
  if (last < first) return invalid_argument("'" + std::string(text) + "' is no range: the smaller size comes first");
  std::vector<double> sizes;
  for (double bytes = first; bytes <= last; bytes *= 2) sizes.push_back(bytes);
  return sizes;
}

Result<Fault> parse_slow(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos) return invalid_argument("it wants a link and what is left of it: host3:mlx5_0=0.5");
  const double rate = TUTTI_TRY(parse_real(std::string_view(text).substr(equals + 1)));
  if (rate < kMinLeft || rate > 1)
    return invalid_argument("what is left of a link is from 0.001 to 1; --fail is of ports of which nothing is");
  return Fault{.link = text.substr(0, equals), .rate = rate};
}

Result<std::pair<std::string, double>> parse_figure(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos) return invalid_argument("it wants a name and a value: hop_us.network.Simple=10");
  const double value = TUTTI_TRY(parse_real(std::string_view(text).substr(equals + 1)));
  return std::pair(text.substr(0, equals), value);
}

Status add_fault(Cluster& cluster, Fault fault) {
  for (const Fault& other : cluster.faults)
    if (other.link == fault.link) return invalid_argument("what is left of " + fault.link + " is given twice");
  cluster.faults.push_back(std::move(fault));
  return {};
}

Status apply_to_cluster(Cluster& cluster, int option, const std::string& value) {
  switch (option) {
    case kHosts: cluster.hosts = TUTTI_TRY(parse_count(value, 1, kMaxCount)); break;
    case kRanksPerHost: cluster.ranks_per_host = TUTTI_TRY(parse_count(value, 1, kMaxCount)); break;
    case kRails: cluster.rails = TUTTI_TRY(parse_count(value, 1, kMaxCount)); break;
    case kTiers: cluster.tiers = TUTTI_TRY(parse_count(value, 1, kMaxTiers)); break;
    case kHostsPerLeaf: cluster.hosts_per_leaf = TUTTI_TRY(parse_count(value, 1, kMaxCount)); break;
    case kOversubscription: cluster.oversubscription = TUTTI_TRY(parse_real(value)); break;
    case kSlow: return add_fault(cluster, TUTTI_TRY(parse_slow(value)));
    default: return add_fault(cluster, {.link = value, .rate = 0});
  }
  return {};
}

Status apply(SimulateRequest& request, int option, const std::string& value) {
  switch (option) {
    case kTopology: request.topology = value; break;
    case kGpu: request.gpu = value; break;
    case kCollective: request.collective = TUTTI_TRY(parse_collective(value)); break;
    case kRoot: request.root = TUTTI_TRY(parse_count(value, 0, kMaxCount)); break;
    case kBytes: request.bytes = TUTTI_TRY(parse_sizes(value)); break;
    case kAlgorithm: request.algorithm = value == "all" ? "" : value; break;
    case kProtocol:
      request.protocol = value;
      TUTTI_CHECK_OK(check_protocol(value));
      break;
    case kCompress:
      request.compression = value;
      TUTTI_CHECK_OK(parse_compression(value).status());
      break;
    case kMaxRelativeError: request.max_relative_error = TUTTI_TRY(parse_number(value, 1)); break;
    case kType: request.type = TUTTI_TRY(parse_float_type(value)); break;
    case kLike:
      if (value != "nccl") return invalid_argument("calls can be made as nccl makes them, not as '" + value + "'");
      request.like_nccl = true;
      break;
    case kChannels: request.channels = TUTTI_TRY(parse_count(value, 1, kMaxCount)); break;
    case kChunk: request.chunk_bytes = TUTTI_TRY(parse_bytes(value)); break;
    case kSlots: request.slots = TUTTI_TRY(parse_count(value, kMinSlots, kMaxSlots)); break;
    case kLaunch: request.launch = TUTTI_TRY(parse_launch_mode(value)); break;
    case kFigure: request.figures.push_back(TUTTI_TRY(parse_figure(value))); break;
    case kJitter: request.jitter = TUTTI_TRY(parse_real(value)); break;
    case kSeed: request.seed = TUTTI_TRY(parse_count(value, 0, kMaxCount)); break;
    case kRings:
      request.rings = TUTTI_TRY(parse_count(value, 0, kMaxRings));
      request.asks_for_rings = true;
      break;
    case kUnfolded: request.folded = false; break;
    case kTrace: request.trace = value; break;
    case kJson: request.json = true; break;
    case 'h':
    case kHelp: request.help = true; break;
    case ':': return invalid_argument("it wants a value after it");
    case '?': return invalid_argument("there is no such option; tutti simulate --help lists them");
    default: return apply_to_cluster(request.cluster, option, value);
  }
  return {};
}

Status check(const SimulateRequest& request, const GivenOptions& given) {
  if (request.topology.empty() || request.bytes.empty())
    return invalid_argument("simulate wants --topology and --bytes; tutti simulate --help lists what else there is");
  if (request.root > 0 && !has_root(request.collective))
    return invalid_argument("--root has no meaning for " + std::string(name(request.collective)) + ": it has none");
  TUTTI_CHECK_OK(check_compression_or_bound("--compress and --max-relative-error", request.compression,
                                            request.max_relative_error));
  if (given.has(kSeed) && request.jitter == 0) return invalid_argument("--seed is of --jitter: give that, too");
  if (given.has(kType) && request.compression.empty() && request.max_relative_error == 0)
    return invalid_argument("--type is of what is rounded: give --compress or --max-relative-error");
  if (!request.trace.empty() && request.bytes.size() > 1)
    return invalid_argument("--trace is of one size: --bytes gives several");
  return {};
}

}  // namespace

Result<SimulateRequest> parse_simulate(int argc, char** argv) {
  SimulateRequest request;
  request.cluster.hosts = 0;
  opterr = 0;
  optind = 0;  // Whatever was read before.
  GivenOptions given;
  for (;;) {
    const int place = std::max(optind, 1);
    const int chosen = getopt_long(argc, argv, "+:h", kOptions, nullptr);
    if (chosen == -1) break;
    const std::string at = std::string("reading ") + argv[place];
    const bool may_come_again = chosen == kSlow || chosen == kFail || chosen == kFigure;
    if (!may_come_again) TUTTI_CHECK_OK(given.add(chosen, optarg).during(at));
    TUTTI_CHECK_OK(apply(request, chosen, optarg ? optarg : "").during(at));
  }
  for (const auto& [option, title] :
       {std::pair(kRails, "--rails"), std::pair(kTiers, "--tiers"), std::pair(kHostsPerLeaf, "--hosts-per-leaf"),
        std::pair(kOversubscription, "--oversubscription")})
    if (given.has(option)) request.between_hosts = title;
  if (optind < argc) return invalid_argument(std::string("'") + argv[optind] + "' is one argument too many");
  if (!request.help) TUTTI_CHECK_OK(check(request, given));
  return request;
}

}  // namespace tutti::tool
