#include "tools/tutti/simulate_request.h"

#include <string_view>

#include "src/base/protocol.h"
#include "src/base/read_number.h"
#include "src/communicator/call/forced.h"
#include "src/compression/format.h"
#include "src/tuner/choose.h"
#include "src/tuner/rings.h"
#include "tools/tutti/command_line.h"
#include "tools/tutti/options.h"
#include "tools/tutti/request.h"

namespace tutti::tool {

namespace {

constexpr double kMaxBytes = 1e15;
constexpr std::uint32_t kMaxCount = 1U << 24;
constexpr std::uint32_t kMinSlots = 2;  // A ring of two stages needs them.
constexpr std::uint32_t kMaxSlots = 1024;
constexpr std::uint32_t kMaxTiers = 3;
constexpr double kMinLeft = 0.001;

Result<double> parse_real(std::string_view text) {
  double value = 0;
  if (!read_number(text, value) || !(value >= 0 && value <= kMaxBytes))
    return invalid_argument("must be a number from 0 to 1e15");
  return value;
}

Result<simulator::Fault> parse_slow(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos)
    return invalid_argument("must be a link and the remaining fraction of its bandwidth, such as host3:mlx5_0=0.5");
  const Result<double> rate = parse_real(std::string_view(text).substr(equals + 1));
  if (!rate.ok() || rate.value() < kMinLeft || rate.value() > 1)
    return invalid_argument("the fraction must be from 0.001 to 1; use --fail for a port that has failed");
  return simulator::Fault{.link = text.substr(0, equals), .rate = rate.value()};
}

Result<std::pair<std::string, double>> parse_figure(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos)
    return invalid_argument("must be a name and a value, such as hop_us.network.Simple=10");
  const double value = TUTTI_TRY(parse_real(std::string_view(text).substr(equals + 1)));
  return std::pair(text.substr(0, equals), value);
}

Status add_fault(simulator::Cluster& cluster, simulator::Fault fault) {
  for (const simulator::Fault& other : cluster.faults)
    if (other.link == fault.link) return invalid_argument(fault.link + " is given twice");
  cluster.faults.push_back(std::move(fault));
  return {};
}

Status apply_to_cluster(simulator::Cluster& cluster, int option, const std::string& value) {
  switch (option) {
    case kHosts: cluster.hosts = TUTTI_TRY(parse_count(value, 1, kMaxCount)); break;
    case kNvlinkDomain: cluster.hosts_per_nvlink_domain = TUTTI_TRY(parse_count(value, 1, kMaxCount)); break;
    case kRanksPerHost: cluster.ranks_per_host = TUTTI_TRY(parse_count(value, 1, kMaxCount)); break;
    case kRails: cluster.rails = TUTTI_TRY(parse_count(value, 1, kMaxCount)); break;
    case kTiers: cluster.tiers = TUTTI_TRY(parse_count(value, 1, kMaxTiers)); break;
    case kHostsPerLeaf: cluster.hosts_per_leaf = TUTTI_TRY(parse_count(value, 1, kMaxCount)); break;
    case kOversubscription: cluster.oversubscription = TUTTI_TRY(parse_real(value)); break;
    case kSlow: return add_fault(cluster, TUTTI_TRY(parse_slow(value)));
    case kFail: return add_fault(cluster, {.link = value, .rate = 0});
    default: return not_implemented();
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
      request.protocol = canonical_protocol(value);
      TUTTI_CHECK_OK(check_protocol(request.protocol));
      break;
    case kCompress:
      request.compression = value;
      TUTTI_CHECK_OK(parse_compression(value).status());
      break;
    case kMaxRelativeError: request.max_relative_error = TUTTI_TRY(parse_number(value, 1)); break;
    case kType: request.type = TUTTI_TRY(parse_float_type(value)); break;
    case kLike:
      if (value != "nccl") return invalid_argument("must be nccl");
      request.like_nccl = true;
      break;
    case kKernels:
      if (value != "tutti" && value != "nccl") return invalid_argument("must be tutti or nccl");
      request.kernels = value == "nccl" ? simulator::Kernels::nccl : simulator::Kernels::tutti;
      break;
    case kChannels: request.channels = TUTTI_TRY(parse_count(value, 1, kMaxCount)); break;
    case kChunk: request.chunk_bytes = TUTTI_TRY(parse_bytes(value)); break;
    case kSlots: request.slots = TUTTI_TRY(parse_count(value, kMinSlots, kMaxSlots)); break;
    case kLaunch: request.launch = TUTTI_TRY(simulator::parse_launch_mode(value)); break;
    case kFigure: request.figures.push_back(TUTTI_TRY(parse_figure(value))); break;
    case kJitter: request.jitter = TUTTI_TRY(parse_real(value)); break;
    case kSeed: request.seed = TUTTI_TRY(parse_count(value, 0, kMaxCount)); break;
    case kRings:
      request.rings = TUTTI_TRY(parse_count(value, 0, kMaxRings));
      request.asks_for_rings = true;
      break;
    case kEachRank: request.symmetric = false; break;
    case kTrace: request.trace = value; break;
    case kJson: request.json = true; break;
    default: return apply_to_cluster(request.cluster, option, value);
  }
  return {};
}

Status check(const SimulateRequest& request, const GivenOptions& given) {
  if (request.topology.empty() || request.bytes.empty())
    return invalid_argument("tutti simulate needs --topology and --bytes; see tutti simulate --help");
  if (request.root > 0 && !has_root(request.collective))
    return invalid_argument("--root: " + std::string(name(request.collective)) + " has no root");
  TUTTI_CHECK_OK(check_compression_or_bound("--compress and --max-relative-error", request.compression,
                                            request.max_relative_error));
  if (given.has(kSeed) && request.jitter == 0) return invalid_argument("--seed needs --jitter");
  if (given.has(kType) && request.compression.empty() && request.max_relative_error == 0)
    return invalid_argument(kTypeWithoutCompression);
  if (!request.trace.empty() && request.bytes.size() > 1) return invalid_argument("--trace needs one size in --bytes");
  return {};
}

}  // namespace

Result<SimulateRequest> parse_simulate(int argc, char** argv) {
  SimulateRequest request;
  request.cluster.hosts = 0;
  const GivenOptions given = TUTTI_TRY(parse_options(
      describe_simulate(), argc, argv, [&](int key, const std::string& value) { return apply(request, key, value); }));
  for (const auto& [option, title] :
       {std::pair(kRails, "--rails"), std::pair(kTiers, "--tiers"), std::pair(kHostsPerLeaf, "--hosts-per-leaf"),
        std::pair(kOversubscription, "--oversubscription")})
    if (given.has(option)) request.network_choice = title;
  TUTTI_CHECK_OK(check(request, given));
  if (request.like_nccl && given.has(kKernels))
    return invalid_argument("--like nccl uses the kernels of NCCL; omit --kernels");
  if (request.like_nccl) request.kernels = simulator::Kernels::nccl;
  return request;
}

}  // namespace tutti::tool
