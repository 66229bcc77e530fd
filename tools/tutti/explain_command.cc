#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include "algorithms/catalogue.h"
#include "src/base/config.h"
#include "src/base/protocol.h"
#include "src/bootstrap/peer_record.h"
#include "src/communicator/call/forced.h"
#include "src/communicator/joining/network_choice.h"
#include "tools/tutti/command_line.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/explain_forced.h"
#include "tools/tutti/explain_kept.h"
#include "tools/tutti/explain_report.h"
#include "tools/tutti/explain_sizes.h"
#include "tools/tutti/explain_topology.h"
#include "tools/tutti/names.h"
#include "tools/tutti/options.h"
#include "tools/tutti/quantities.h"
#include "tools/tutti/usual_machine.h"

namespace tutti::tool {
namespace {

constexpr std::uint32_t kThreadBlocks = 32;  // Thread blocks of a GPU of unknown model.

struct ExplainRequest {
  Query query;
  ForcedNames forced;
  ExplainedTerms terms;
  Groups groups;
  RequestedMachine requested;
  bool measured_by_name = false;   // --tune-file was given.
  ExplainedTopology topology;      // Empty name: hosts like this one, or their GPUs.
  std::optional<CallModel> model;  // Simulates calls on the topology, if there is one.
  Machine machine;                 // Cost model of the topology, or the one that communicators here use.
  std::string compression;
  std::vector<double> sizes;    // Bytes of a block.
  bool compares = false;        // With NCCL.
  double link_gbits_per_s = 0;  // Network link of a host; 0: the built-in estimate.
  bool json = false;
};

constexpr Rank kMaxRanks = 1'000'000;

// Whether the output is a table of sizes, and not of candidates for one size.
bool has_table(const ExplainRequest& request) { return request.compares || request.sizes.size() > 1; }

Status parse_groups(ExplainRequest& request, const std::string& text) {
  const std::vector<Groups> layouts = TUTTI_TRY(parse_layouts(text));
  if (layouts.size() != 1) return invalid_argument("must be one layout, such as 4x8 or 3+5");
  request.groups = layouts.front();
  return {};
}

Status apply(ExplainRequest& request, int option, const std::string& value) {
  switch (option) {
    case kCollective: request.query.problem.collective = TUTTI_TRY(parse_collective(value)); break;
    case kBytes:
      request.sizes = TUTTI_TRY(parse_sizes(value));
      request.query.block_bytes = static_cast<std::uint64_t>(request.sizes.front());
      break;
    case kCompare:
      if (value != "nccl") return invalid_argument("must be nccl");
      request.compares = true;
      break;
    case kRanks: request.query.problem.ranks = TUTTI_TRY(parse_count(value, 1, kMaxRanks)); break;
    case kGroups: return parse_groups(request, value);
    case kHosts: request.topology.hosts = value; break;
    case kTopology: request.topology.name = value; break;
    case kNvlinkDomain: request.topology.nvlink_domain = TUTTI_TRY(parse_count(value, 1, kMaxRanks)); break;
    case kGpu: request.topology.gpu = value; break;
    case kMemory:
      if (value != "host" && value != "cuda") return invalid_argument("must be host or cuda");
      request.query.thread_blocks = value == "cuda" ? kThreadBlocks : 0;
      break;
    case kTransport:
      if (value != "shm" && value != "tcp")
        return invalid_argument("must be shm or tcp, which stands for all networks");
      request.query.network = value == "tcp";
      break;
    case kMapped: request.query.mapped = true; break;
    case kCores: request.terms.cores = TUTTI_TRY(parse_count(value, 1, kMaxRanks)); break;
    case kAlgorithm: request.forced.algorithm = value; break;
    case kProtocol: request.forced.protocol = canonical_protocol(value); break;
    case kCompress:
      request.compression = value;
      request.query.compression = TUTTI_TRY(parse_compression(value));
      break;
    case kMaxRelativeError: request.query.max_relative_error = TUTTI_TRY(parse_number(value, 1)); break;
    case kType: request.query.type = TUTTI_TRY(parse_float_type(value)); break;
    case kLink: {
      const Result<double> gbits_per_s = parse_number(value, 1e6), rate = parse_link_rate(value);
      if (!gbits_per_s.ok() && !rate.ok())
        return invalid_argument("must be a bandwidth from 1Mbit to 1000Tbit, such as 10Gbit, or a number of Gbit/s");
      request.link_gbits_per_s = gbits_per_s.ok() ? gbits_per_s.value() : rate.value();
      break;
    }
    case kTuneFile: request.requested.file = value; break;
    case kMachine: request.requested.named = value; break;
    case kJson: request.json = true; break;
    default: return not_implemented();
  }
  return {};
}

// Ranks of several hosts communicate over a network.
Status lay_out(ExplainRequest& request, const GivenOptions& given) {
  Query& query = request.query;
  const Rank ranks = ranks_in(request.groups);
  if (given.has(kRanks) && ranks != query.problem.ranks)
    return invalid_argument("--groups has " + std::to_string(ranks) + " ranks in total, but --ranks is " +
                            std::to_string(query.problem.ranks));
  query.problem.ranks = ranks;
  const auto hosts = static_cast<Rank>(request.groups.front().size());
  if (hosts == 1) return {};
  if (given.has(kTransport) && !query.network)
    return invalid_argument("--transport shm works within one host, but --groups has " + std::to_string(hosts) +
                            " hosts");
  query.network = true;
  if (ranks > hosts) query.problem.groups = request.groups;
  return {};
}

// Whether the ranks would run on this machine: one host, and no option describes another machine.
bool are_here(const ExplainRequest& request, const GivenOptions& given) {
  const bool several_hosts = given.has(kGroups) && request.groups.front().size() > 1;
  return request.query.thread_blocks == 0 && !several_hosts && !given.has(kLink);
}

Status apply_transport(ExplainRequest& request, const GivenOptions& given) {
  if (given.has(kTransport)) return {};
  const Rank hosts = given.has(kTopology) ? 0
                     : given.has(kGroups) ? static_cast<Rank>(request.groups.front().size())
                                          : 1;
  TUTTI_CHECK_OK(tool::apply_transport(hosts, request.query, request.terms.environment));
  return are_here(request, given) ? check_requested_transport(config()) : Status();
}

// Sets the number of ranks per core. Ranks that share cores are on one machine, with no network between them.
Status share_cores(ExplainRequest& request, const GivenOptions& given) {
  if (request.query.thread_blocks > 0) {
    if (!given.has(kCores)) return {};
    return invalid_argument("--cores applies to host memory: omit it with --memory cuda");
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

// Settles the compression, from options or the environment.
Status settle_compression(ExplainRequest& request, const GivenOptions& given) {
  Query& query = request.query;
  std::string& words = request.terms.environment;
  TUTTI_CHECK_OK(
      check_compression_or_bound("--compress and --max-relative-error", request.compression, query.max_relative_error));
  if (request.compression.empty() && query.max_relative_error == 0) TUTTI_CHECK_OK(apply_compression(query, words));
  const bool rounds =
      !request.compression.empty() || query.compression != CompressionFormat::none || query.max_relative_error > 0;
  if (given.has(kType) && !rounds) return invalid_argument(kTypeWithoutCompression);
  if (query.compression == CompressionFormat::none || message_bytes(query, query.compression) < query.block_bytes)
    return {};
  words += (words.empty() ? "" : " ") + std::string("Not compressed: ") + name(query.compression) +
           " would not shorten messages of " + name(query.type) + ".";
  query.compression = CompressionFormat::none;  // Calls do the same.
  return {};
}

// Resolves options that depend on each other.
Status settle(ExplainRequest& request, const GivenOptions& given) {
  Query& query = request.query;
  request.machine = usual_machine(query.thread_blocks > 0);
  if (given.has(kTopology)) {
    if (!given.has(kRanks)) query.problem.ranks = 0;
    KnownTopology known = TUTTI_TRY(explain_on(request.topology, query));
    request.machine = std::move(known.machine);
    request.model = std::move(known.model);
    request.requested.links = std::move(known.links);
  }
  if (given.has(kGroups)) TUTTI_CHECK_OK(lay_out(request, given));
  TUTTI_CHECK_OK(apply_transport(request, given));
  if (!given.has(kTopology)) query.on_nvlinks = query.thread_blocks > 0 && !query.network;
  const bool hosts = query.network || (request.model && request.model->network().cluster().hosts > 1);
  if (query.mapped && hosts) return invalid_argument("--mapped needs ranks on one host that use shm");
  TUTTI_CHECK_OK(share_cores(request, given));
  if (request.link_gbits_per_s > 0) {
    if (!query.network)
      return invalid_argument("--link needs several hosts: give --groups, such as 2x4, or --transport tcp");
    set_link(request.machine, request.link_gbits_per_s);
  }
  TUTTI_CHECK_OK(settle_compression(request, given));
  const bool one_host = given.has(kTopology) ? !request.requested.links.empty() : !query.network;
  if (query.thread_blocks > 0 && !one_host) {
    if (request.measured_by_name)
      return invalid_argument(
          "--tune-file: calls between GPUs of several hosts are not autotuned, so there are no times to show");
    request.requested.file.clear();
  }
  if (has_table(request) && (query.compression != CompressionFormat::none || query.max_relative_error > 0))
    return invalid_argument(
        "--compare and ranges of --bytes are for calls without compression: omit --compress and --max-relative-error, "
        "and unset TUTTI_COMPRESS and TUTTI_MAX_RELATIVE_ERROR");
  request.requested.cores = given.has(kCores) ? request.terms.cores : 0;
  query.catalogue = catalogue(query.problem.collective);
  if (!request.forced.algorithm.empty() && find(query.problem.collective, request.forced.algorithm) == nullptr)
    return no_such_algorithm(request.forced.algorithm, query.problem.collective);
  if (query.thread_blocks > 0) query.channels = config().channels;
  return apply_environment(query, request.forced, request.terms.environment);
}

// Checks that required options are there, and that no option is without effect.
Status check(ExplainRequest& request, const GivenOptions& given) {
  const bool has_ranks = given.has(kRanks) || given.has(kGroups) || given.has(kTopology);
  if (given.has(kHosts) && !given.has(kTopology))
    return invalid_argument(
        "--hosts needs --topology; without a topology, --groups places ranks on hosts, such as 4x8");
  if (!given.has(kBytes) || !has_ranks)
    return invalid_argument(
        "tutti explain needs --bytes and one of --ranks, --groups and --topology; see tutti explain --help");
  if (given.has(kNvlinkDomain) && !given.has(kTopology)) return invalid_argument("--nvlink-domain needs --topology");
  if (given.has(kGpu) && !given.has(kTopology)) return invalid_argument("--gpu needs --topology");
  for (const auto& [option, title] :
       {std::pair(kGroups, "--groups"), std::pair(kMemory, "--memory"), std::pair(kTransport, "--transport"),
        std::pair(kCores, "--cores"), std::pair(kLink, "--link")})
    if (given.has(kTopology) && given.has(option))
      return invalid_argument(std::string(title) + " and --topology exclude each other: the topology determines it");
  if (has_table(request) && !given.has(kTopology))
    return invalid_argument("--compare and ranges of --bytes need --topology, such as dgx-h100");
  if (has_table(request) && given.has(kTuneFile))
    return invalid_argument("--tune-file is for one size, without --compare");
  if (given.has(kMachine) && request.requested.file.empty()) return invalid_argument("--machine needs --tune-file");
  if (!given.has(kTuneFile)) return {};  // The file of TUTTI_TUNE_FILE need not exist yet.
  request.measured_by_name = true;
  if (::access(request.requested.file.c_str(), R_OK) == 0) return {};
  return system_error("open '" + request.requested.file + "' of --tune-file");
}

Result<ExplainRequest> parse(int argc, char** argv) {
  ExplainRequest request;
  request.requested.file = config().tune_file;
  const GivenOptions given = TUTTI_TRY(parse_options(
      describe_explain(), argc, argv, [&](int key, const std::string& value) { return apply(request, key, value); }));
  TUTTI_CHECK_OK(check(request, given));
  TUTTI_CHECK_OK(settle(request, given));
  return request;
}

// Replaces predicted times by simulated ones, with notes about them.
Status simulate_times(const CallModel& model, const Query& query, std::vector<Candidate>& found,
                      ExplainedTerms& terms) {
  TUTTI_CHECK_OK(simulate_candidates(model, query, found));
  terms.simulated = true;
  terms.notes = notes_on_hosts(model.network());
  if (std::any_of(found.begin(), found.end(), [](const Candidate& each) { return each.predicted_us == 0; }))
    terms.notes.emplace_back(
        "Candidates without a time take long to simulate; tutti simulate --algorithm simulates one.");
  return {};
}

}  // namespace

Status explain_command(int argc, char** argv) {
  if (!config().refused.empty()) return invalid_argument(config().refused.front());
  const ExplainRequest request = TUTTI_TRY(parse(argc, argv));
  Query query = request.query;
  query.algorithm = request.forced.algorithm;  // Views of strings that `request` owns.
  query.protocol = request.forced.protocol;
  query.machine = &request.machine;
  if (has_table(request))
    return explain_sizes(*request.model, {.query = query,
                                          .sizes = request.sizes,
                                          .compares = request.compares,
                                          .json = request.json,
                                          .topology = request.topology.name,
                                          .environment = request.terms.environment});
  std::vector<Candidate> found = TUTTI_TRY(candidates(query));
  ExplainedTerms terms = request.terms;
  if (request.model) TUTTI_CHECK_OK(simulate_times(*request.model, query, found, terms));
  Measured known = TUTTI_TRY(read_measured(request.requested, query));
  if (request.measured_by_name) known.named_file = request.requested.file;
  if (request.json) print_json(query, found, known, terms);
  else print_text(query, found, known, terms);
  if (found.empty())
    return unsupported("no algorithm satisfies these options; the excluded algorithms above have the reasons");
  return {};
}

}  // namespace tutti::tool
