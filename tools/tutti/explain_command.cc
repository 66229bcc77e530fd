#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "algorithms/catalogue.h"
#include "src/base/config.h"
#include "src/base/instructions.h"
#include "src/bootstrap/peer_record.h"
#include "src/communicator/forced.h"
#include "src/communicator/joining/between_hosts.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/explain_forced.h"
#include "tools/tutti/explain_kept.h"
#include "tools/tutti/explain_report.h"
#include "tools/tutti/explain_topology.h"
#include "tools/tutti/given.h"
#include "tools/tutti/names.h"
#include "tools/tutti/usage.h"

namespace tutti::tool {
namespace {

constexpr std::uint32_t kThreadBlocks = 32;  // Of a device that nobody has asked.

struct ExplainRequest {
  Query query;
  ForcedNames forced;
  ExplainedTerms terms;
  Groups groups;
  AskedMachine asked;
  bool measured_by_name = false;  // --tune-file names it.
  ExplainedTopology topology;     // Of no name: hosts of the same kind as this one, or devices of theirs.
  Machine machine;  // Of the topology, where one was named; else as communicators here would take theirs to be.
  std::string compression;
  double link_gbits_per_s = 0;  // Of a host to others; 0: as assumed.
  bool json = false, help = false;
};

enum Option {
  kCollective,
  kBytes,
  kRanks,
  kGroups,
  kHosts,
  kTopology,
  kGpu,
  kMemory,
  kTransport,
  kMapped,
  kCores,
  kAlgorithm,
  kProtocol,
  kCompress,
  kMaxRelativeError,
  kType,
  kLink,
  kTuneFile,
  kMachine,
  kJson,
  kHelp
};
constexpr option kOptions[] = {
    {"collective", required_argument, nullptr, kCollective},
    {"bytes", required_argument, nullptr, kBytes},
    {"ranks", required_argument, nullptr, kRanks},
    {"groups", required_argument, nullptr, kGroups},
    {"hosts", required_argument, nullptr, kHosts},
    {"topology", required_argument, nullptr, kTopology},
    {"gpu", required_argument, nullptr, kGpu},
    {"memory", required_argument, nullptr, kMemory},
    {"transport", required_argument, nullptr, kTransport},
    {"mapped", no_argument, nullptr, kMapped},
    {"cores", required_argument, nullptr, kCores},
    {"algorithm", required_argument, nullptr, kAlgorithm},
    {"protocol", required_argument, nullptr, kProtocol},
    {"wire", required_argument, nullptr, kCompress},
    {"max-relative-error", required_argument, nullptr, kMaxRelativeError},
    {"type", required_argument, nullptr, kType},
    {"link", required_argument, nullptr, kLink},
    {"tune-file", required_argument, nullptr, kTuneFile},
    {"machine", required_argument, nullptr, kMachine},
    {"json", no_argument, nullptr, kJson},
    {"help", no_argument, nullptr, kHelp},
    {},
};

constexpr Rank kMaxRanks = 1'000'000;

Status parse_groups(ExplainRequest& request, const std::string& text) {
  const std::vector<Groups> layouts = TUTTI_TRY(parse_layouts(text));
  if (layouts.size() != 1) return invalid_argument("explain takes one layout, as 4x8 or 3+5");
  request.groups = layouts.front();
  return {};
}

Status apply(ExplainRequest& request, int option, const std::string& value) {
  switch (option) {
    case kCollective: request.query.problem.collective = TUTTI_TRY(parse_collective(value)); break;
    case kBytes: request.query.block_bytes = static_cast<std::uint64_t>(TUTTI_TRY(parse_bytes(value))); break;
    case kRanks: request.query.problem.ranks = TUTTI_TRY(parse_count(value, 1, kMaxRanks)); break;
    case kGroups: return parse_groups(request, value);
    case kHosts: request.topology.hosts = value; break;
    case kTopology: request.topology.name = value; break;
    case kGpu: request.topology.gpu = value; break;
    case kMemory:
      if (value != "host" && value != "cuda") return invalid_argument("memory is host or cuda");
      request.query.thread_blocks = value == "cuda" ? kThreadBlocks : 0;
      break;
    case kTransport:
      if (value != "shm" && value != "tcp") return invalid_argument("a transport is shm or tcp here");
      request.query.network = value == "tcp";
      break;
    case kMapped: request.query.mapped = true; break;
    case kCores: request.terms.cores = TUTTI_TRY(parse_count(value, 1, kMaxRanks)); break;
    case kAlgorithm: request.forced.algorithm = value; break;
    case kProtocol: request.forced.protocol = value; break;
    case kCompress:
      request.compression = value;
      request.query.compression = TUTTI_TRY(parse_compression(value));
      break;
    case kMaxRelativeError: request.query.max_relative_error = TUTTI_TRY(parse_number(value, 1)); break;
    case kType: request.query.type = TUTTI_TRY(parse_float_type(value)); break;
    case kLink: request.link_gbits_per_s = TUTTI_TRY(parse_number(value, 1e6)); break;
    case kTuneFile: request.asked.file = value; break;
    case kMachine: request.asked.named = value; break;
    case kJson: request.json = true; break;
    case 'h':
    case kHelp: request.help = true; break;
    case ':': return invalid_argument("it wants a value after it");
    default: return invalid_argument("explain has no such option");
  }
  return {};
}

// Calls on host memory count with what their own processors encode; nobody said that those are others.
Machine usual_machine(bool on_devices) {
  if (on_devices) return machine_of_devices();
  Machine machine = machine_of_hosts();
  set_coding_rates(machine.costs, widest_instructions());
  return machine;
}

// Ranks of several hosts speak over a network.
Status lay_out(ExplainRequest& request, const GivenOptions& given) {
  Query& query = request.query;
  const Rank ranks = ranks_in(request.groups);
  if (given.has(kRanks) && ranks != query.problem.ranks)
    return invalid_argument("--groups have " + std::to_string(ranks) + " ranks together, but --ranks is " +
                            std::to_string(query.problem.ranks));
  query.problem.ranks = ranks;
  const auto hosts = static_cast<Rank>(request.groups.front().size());
  if (hosts == 1) return {};
  if (given.has(kTransport) && !query.network)
    return invalid_argument("--transport shm is of one host, but --groups have " + std::to_string(hosts));
  query.network = true;
  if (ranks > hosts) query.problem.groups = request.groups;
  return {};
}

// Ranks of one host, of which nobody has named another: they would run here.
bool are_here(const ExplainRequest& request, const GivenOptions& given) {
  const bool several_hosts = given.has(kGroups) && request.groups.front().size() > 1;
  return request.query.thread_blocks == 0 && !several_hosts && !given.has(kLink);
}

Status apply_transport(ExplainRequest& request, const GivenOptions& given) {
  if (given.has(kTransport)) return {};
  const Rank hosts = given.has(kTopology) ? 0
                     : given.has(kGroups) ? static_cast<Rank>(request.groups.front().size())
                                          : 1;
  TUTTI_CHECK_OK(tutti::apply_transport(hosts, request.query, request.terms.environment));
  return are_here(request, given) ? check_asked_transport(config()) : Status();
}

// Ranks that share cores are on one machine, with no links between them.
Status share_cores(ExplainRequest& request, const GivenOptions& given) {
  if (request.query.thread_blocks > 0) {
    if (!given.has(kCores)) return {};
    return invalid_argument("--cores are those of ranks on host memory: leave out --memory cuda");
  }
  if (!given.has(kCores)) {
    if (!are_here(request, given)) return {};
    request.terms.cores = TUTTI_TRY(own_record()).cpus;
    request.terms.of_this_host = true;
  }
  request.machine.ranks_per_core =
      std::max(1.0, static_cast<double>(request.query.problem.ranks) / request.terms.cores);
  for (Level& level : request.machine.levels)
    level.member_gbytes_per_s = level.rank_gbytes_per_s = level.latency_us = 0;
  return {};
}

// How messages travel, and what that is said of.
Status settle_compression(ExplainRequest& request, const GivenOptions& given) {
  Query& query = request.query;
  std::string& words = request.terms.environment;
  TUTTI_CHECK_OK(
      check_compression_or_bound("--compress and --max-relative-error", request.compression, query.max_relative_error));
  if (request.compression.empty() && query.max_relative_error == 0) TUTTI_CHECK_OK(apply_compression(query, words));
  const bool rounds =
      !request.compression.empty() || query.compression != CompressionFormat::none || query.max_relative_error > 0;
  if (given.has(kType) && !rounds)
    return invalid_argument("--type is of what is rounded: give --compress or --max-relative-error");
  if (query.compression == CompressionFormat::none || message_bytes(query, query.compression) < query.block_bytes)
    return {};
  words += (words.empty() ? "" : " ") + std::string("In ") + name(query.compression) + " such messages of " +
           name(query.type) + " would not be shorter: they go as they are.";
  query.compression = CompressionFormat::none;  // As calls do.
  return {};
}

// What was said together.
Status settle(ExplainRequest& request, const GivenOptions& given) {
  Query& query = request.query;
  request.machine = usual_machine(query.thread_blocks > 0);
  if (given.has(kTopology)) {
    if (!given.has(kRanks)) query.problem.ranks = 0;
    KnownTopology known = TUTTI_TRY(explain_on(request.topology, query));
    request.machine = std::move(known.machine);
    request.asked.links = std::move(known.links);
  }
  if (given.has(kGroups)) TUTTI_CHECK_OK(lay_out(request, given));
  TUTTI_CHECK_OK(apply_transport(request, given));
  if (query.mapped && query.network)
    return invalid_argument(
        "--mapped is of memory that all ranks can map, which needs one host and no transport but shm");
  TUTTI_CHECK_OK(share_cores(request, given));
  if (request.link_gbits_per_s > 0) {
    if (!query.network)
      return invalid_argument("--link is between hosts: give --groups of several, or --transport tcp");
    Level& network = request.machine.levels[1];
    network.member_gbytes_per_s = network.rank_gbytes_per_s = request.link_gbits_per_s / 8;
  }
  TUTTI_CHECK_OK(settle_compression(request, given));
  const bool one_host = given.has(kTopology) ? !request.asked.links.empty() : !query.network;
  if (query.thread_blocks > 0 && !one_host) {
    if (request.measured_by_name)
      return invalid_argument(
          "--tune-file has no results for GPUs on several hosts, as autotuning does not cover them "
          "(docs/design/tuning.md)");
    request.asked.file.clear();
  }
  request.asked.cores = given.has(kCores) ? request.terms.cores : 0;
  query.catalogue = catalogue(query.problem.collective);
  if (!request.forced.algorithm.empty() && find(query.problem.collective, request.forced.algorithm) == nullptr)
    return no_such_algorithm(request.forced.algorithm, query.problem.collective);
  return apply_environment(query, request.forced, request.terms.environment);
}

// What is there, and what would have no effect.
Status check(ExplainRequest& request, const GivenOptions& given) {
  const bool has_ranks = given.has(kRanks) || given.has(kGroups) || given.has(kTopology);
  if (given.has(kHosts) && !given.has(kTopology))
    return invalid_argument(
        "--hosts counts those of a --topology; without one, --groups say how ranks lie on hosts, as 4x8");
  if (!given.has(kCollective) || !given.has(kBytes) || !has_ranks)
    return invalid_argument("explain wants --collective, --bytes and --ranks, --groups or --topology; see tutti help");
  if (given.has(kGpu) && !given.has(kTopology))
    return invalid_argument("--gpu says what the GPUs of a --topology are: there is none");
  for (const auto& [option, title] :
       {std::pair(kGroups, "--groups"), std::pair(kMemory, "--memory"), std::pair(kTransport, "--transport"),
        std::pair(kCores, "--cores"), std::pair(kLink, "--link")})
    if (given.has(kTopology) && given.has(option))
      return invalid_argument(std::string(title) + " is of other machines: --topology says what there is");
  if (given.has(kMachine) && request.asked.file.empty())
    return invalid_argument("--machine is one of those of a --tune-file: there is none");
  if (!given.has(kTuneFile))
    return {};  // What TUTTI_TUNE_FILE names may come to be when somebody has learnt something.
  request.measured_by_name = true;
  if (::access(request.asked.file.c_str(), R_OK) == 0) return {};
  return system_error("open '" + request.asked.file + "', which --tune-file names");
}

Result<ExplainRequest> parse(int argc, char** argv) {
  ExplainRequest request;
  request.asked.file = config().tune_file;
  GivenOptions given;
  opterr = 0;
  optind = 0;
  for (;;) {
    const char* at = argv[std::max(optind, 1)];
    const int chosen = getopt_long(argc, argv, "+:h", kOptions, nullptr);
    if (chosen == -1) break;
    Status status = given.add(chosen, optarg);
    if (status.ok()) status = apply(request, chosen, optarg ? optarg : "");
    TUTTI_CHECK_OK(std::move(status).during(std::string("reading ") + at));
  }
  if (optind < argc) return invalid_argument(std::string("'") + argv[optind] + "' is one argument too many");
  if (request.help) return request;
  TUTTI_CHECK_OK(check(request, given));
  TUTTI_CHECK_OK(settle(request, given));
  return request;
}

}  // namespace

Status explain_command(int argc, char** argv) {
  const ExplainRequest request = TUTTI_TRY(parse(argc - 1, argv + 1));
  if (request.help) {
    print_usage();
    return {};
  }
  Query query = request.query;
  query.algorithm = request.forced.algorithm;  // Names that this copy does not own.
  query.protocol = request.forced.protocol;
  query.machine = &request.machine;
  const std::vector<Candidate> found = TUTTI_TRY(candidates(query));
  Measured known = TUTTI_TRY(read_measured(request.asked, query));
  if (request.measured_by_name) known.named_file = request.asked.file;
  if (request.json) print_json(query, found, known, request.terms);
  else print_text(query, found, known, request.terms);
  if (found.empty()) return unsupported("no communicator would make this call: see what is left out, and why");
  return {};
}

}  // namespace tutti::tool
