#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/nearest_name.h"
#include "tools/tutti/command_line.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/estimate_report.h"
#include "tools/tutti/explain_topology.h"
#include "tools/tutti/options.h"
#include "tools/tutti/quantities.h"
#include "tools/tutti/request.h"
#include "tools/tutti/training_changes.h"
#include "tools/tutti/usual_machine.h"

namespace tutti::tool {
namespace {

constexpr Rank kMaxRanks = 1'000'000;
constexpr std::uint32_t kMaxAccumulated = 1'000'000;

struct EstimateRequest {
  TrainingStep step;
  Rank ranks = 0;               // 0: those of the topology.
  double link_gbits_per_s = 0;  // 0: the links of the topology.
  ExplainedTopology topology;
  bool json = false;
};

Result<DataType> parse_gradient_type(const std::string& text) {
  std::vector<std::string_view> names;
  for (const DataType type : {DataType::float64, DataType::float32, DataType::float16, DataType::bfloat16,
                              DataType::float8_e4m3, DataType::float8_e5m2}) {
    if (text == name(type)) return type;
    names.emplace_back(name(type));
  }
  return invalid_argument("unknown type '" + text + "' of gradients: " + suggestion(text, names));
}

Status apply(EstimateRequest& request, int option, const std::string& value) {
  TrainingStep& step = request.step;
  switch (option) {
    case kParameters: step.parameters = TUTTI_TRY(parse_parameters(value)); break;
    case kType: step.type = TUTTI_TRY(parse_gradient_type(value)); break;
    case kRanks: request.ranks = TUTTI_TRY(parse_count(value, 2, kMaxRanks)); break;
    case kLink: request.link_gbits_per_s = TUTTI_TRY(parse_link_rate(value)); break;
    case kTopology: request.topology.name = value; break;
    case kHosts: request.topology.hosts = value; break;
    case kNvlinkDomain: request.topology.nvlink_domain = TUTTI_TRY(parse_count(value, 1, kMaxRanks)); break;
    case kGpu: request.topology.gpu = value; break;
    case kCompute: step.compute_us = TUTTI_TRY(parse_duration(value)); break;
    case kAccumulate: step.accumulate = TUTTI_TRY(parse_count(value, 1, kMaxAccumulated)); break;
    case kBucket: step.bucket_bytes = TUTTI_TRY(parse_bytes(value)); break;
    case kCompress: step.compression = TUTTI_TRY(parse_compression(value)); break;
    case kOverlap: step.overlap = TUTTI_TRY(parse_percent(value)); break;
    case kJson: request.json = true; break;
    default: return not_implemented();
  }
  return {};
}

// Checks that required options are there, and that no option is without effect.
Status check(const EstimateRequest& request, const GivenOptions& given) {
  const bool has_topology = given.has(kTopology);
  if (!given.has(kParameters) || !given.has(kCompute) || !(has_topology || (given.has(kRanks) && given.has(kLink))))
    return invalid_argument(
        "tutti estimate needs --parameters, --compute, and either --ranks and --link or --topology; see tutti estimate "
        "--help");
  if (has_topology && given.has(kLink))
    return invalid_argument("--link and --topology exclude each other: the topology has the links");
  for (const auto& [option, title] :
       {std::pair(kHosts, "--hosts"), std::pair(kNvlinkDomain, "--nvlink-domain"), std::pair(kGpu, "--gpu")})
    if (given.has(option) && !has_topology) return invalid_argument(std::string(title) + " needs --topology");
  const TrainingStep& step = request.step;
  if (step.compression == CompressionFormat::none) return {};
  if (!parse_float_type(name(step.type)).ok())
    return invalid_argument(std::string("--compress applies to float32, float16 and bfloat16, not to ") +
                            name(step.type) + "; omit it or change --type");
  if (compressed_bytes(step.compression, kCompressionGroup, step.type) >= kCompressionGroup * size_of(step.type))
    return invalid_argument(std::string("--compress ") + name(step.compression) + " would not shorten messages of " +
                            name(step.type) + "; omit it or choose a shorter format");
  return {};
}

Result<EstimateRequest> parse(int argc, char** argv) {
  EstimateRequest request;
  const GivenOptions given = TUTTI_TRY(parse_options(
      describe_estimate(), argc, argv, [&](int key, const std::string& value) { return apply(request, key, value); }));
  TUTTI_CHECK_OK(check(request, given));
  return request;
}

Result<TrainingMachine> machine_of(const EstimateRequest& request) {
  TrainingMachine training;
  training.query.problem.collective = Collective::all_reduce;
  training.query.problem.ranks = request.ranks;
  if (!request.topology.name.empty()) {
    KnownTopology known = TUTTI_TRY(explain_on(request.topology, training.query));
    training.machine = std::move(known.machine);
    training.model = std::move(known.model);
    return training;
  }
  training.query.network = true;
  training.machine = usual_machine(false);
  training.link_gbits_per_s = request.link_gbits_per_s;
  set_link(training.machine, request.link_gbits_per_s);
  return training;
}

std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string describe_ranks(const TrainingMachine& machine, const EstimateRequest& request) {
  const std::string ranks = std::to_string(machine.query.problem.ranks) + " ranks";
  if (machine.model) return ranks + " on " + request.topology.name;
  return ranks + " with links of " + rounded(machine.link_gbits_per_s) + " Gbit/s";
}

std::vector<std::string> terms_of(const TrainingMachine& machine, const Estimate& estimate) {
  const TrainingStep& step = estimate.step;
  std::vector<std::string> terms;
  if (machine.model) {
    terms.emplace_back("Times of all-reduces are simulated, as by tutti explain --topology.");
    for (std::string& note : notes_on_hosts(machine.model->network())) terms.push_back(std::move(note));
  } else {
    terms.push_back("Each rank has a host of its own, a full-duplex link, a latency of " +
                    rounded(machine.machine.levels[1].latency_us) +
                    " us each way, and the costs of TCP that tutti explain --transport tcp predicts with.");
  }
  if (estimate.times.limited_by_work)
    terms.emplace_back(
        "With this link the work of a rank (copies, sums, messages) takes longer than the transfer, and determines the "
        "time of an all-reduce.");
  terms.emplace_back("The algorithm is the one that Tutti chooses for a bucket.");
  if (step.overlap)
    terms.push_back("Computation hides " + rounded(100 * *step.overlap) +
                    " % of the communication, but at most the last backward pass.");
  else
    terms.emplace_back(
        "Gradients become ready at a constant rate during the last backward pass, and buckets are reduced one after "
        "the other.");
  terms.emplace_back(
      "The backward pass is two thirds of the computation of a micro-batch. Communication does not slow computation, "
      "and "
      "the framework takes no time per bucket.");
  return terms;
}

}  // namespace

Status estimate_command(int argc, char** argv) {
  const EstimateRequest request = TUTTI_TRY(parse(argc, argv));
  const TrainingMachine machine = TUTTI_TRY(machine_of(request));
  Estimate estimate;
  estimate.step = request.step;
  estimate.times = TUTTI_TRY(step_times(request.step, machine));
  estimate.changes = TUTTI_TRY(single_changes(request.step, estimate.times, machine));
  estimate.ranks = describe_ranks(machine, request);
  estimate.rank_count = machine.query.problem.ranks;
  estimate.terms = terms_of(machine, estimate);
  if (request.json) print_json(estimate);
  else print_text(estimate);
  return {};
}

}  // namespace tutti::tool
