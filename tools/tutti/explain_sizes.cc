#include "tools/tutti/explain_sizes.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "algorithms/catalogue.h"
#include "src/base/json.h"
#include "src/model/gpu_kernel.h"
#include "tools/tutti/help.h"
#include "tools/tutti/nccl_times.h"

namespace tutti::tool {
namespace {

constexpr const char* kNotMeasured =
    "No time between GPUs was measured: Tutti has run on one GPU that several ranks shared.";

struct ComparedTime {
  double us = 0;
  std::size_t source = 0;  // Number of a published source, from 1; 0: simulated.
};

struct ExplainedSize {
  double block_bytes = 0, whole_bytes = 0;
  Choice choice;
  double us = 0;
  std::optional<ComparedTime> nccl;
};

struct ExplainedSizes {
  std::vector<ExplainedSize> rows;
  std::vector<std::string_view> sources;  // Published times of NCCL.
  std::vector<std::string> notes;
};

// Times of the library's choices.
class ChosenTimes {
 public:
  ChosenTimes(const CallModel& model, const Problem& problem) : model_(model), problem_(problem) {}

  Result<double> simulate(const Choice& choice, double whole_bytes) {
    auto found = simulations_.find(choice.algorithm);
    if (found == simulations_.end()) {
      simulator::Limits limits;
      limits.max_events = kMaxEventsOfMany;
      const Algorithm& algorithm = *find(problem_.collective, choice.algorithm);
      simulator::Simulation made = TUTTI_TRY(model_.prepare(algorithm, problem_, limits));
      found = simulations_.emplace(choice.algorithm, std::move(made)).first;
    }
    simulator::Call call = model_.call_of(choice, whole_bytes);
    call.launch = simulator::LaunchMode::graph;
    const simulator::Outcome outcome = TUTTI_TRY(found->second.run(call));
    return outcome.time_us;
  }

 private:
  const CallModel& model_;
  const Problem& problem_;
  std::map<std::string_view, simulator::Simulation> simulations_;
};

// Number of a source in the list, from 1. Adds it if it is new.
std::size_t number_of(std::string_view source, std::vector<std::string_view>& sources) {
  const auto found = std::find(sources.begin(), sources.end(), source);
  if (found != sources.end()) return static_cast<std::size_t>(found - sources.begin()) + 1;
  sources.push_back(source);
  return sources.size();
}

// Sets NCCL's times: published ones where there are some, else simulated ones.
void compare(const CallModel& model, const Problem& problem, ExplainedSizes& sizes) {
  NcclTimes simulated(model);
  std::string reason;
  for (ExplainedSize& row : sizes.rows) {
    if (const PublishedTime* published = published_nccl_time(model.network(), problem.collective, row.whole_bytes)) {
      row.nccl = ComparedTime{published->us, number_of(published->source, sizes.sources)};
      continue;
    }
    Result<double> us = simulated.simulate(problem, row.whole_bytes);
    if (us.ok()) row.nccl = ComparedTime{us.value()};
    else reason = std::move(us).status().message();
  }
  if (sizes.sources.empty())
    sizes.notes.emplace_back("NCCL: no published figure for this collective and topology at these sizes.");
  if (!reason.empty()) sizes.notes.push_back("NCCL: no time where there is a dash: " + reason + ".");
  sizes.notes.emplace_back(
      "NCCL's times are for ordinary buffers, in a graph up to 128 MiB. m: not measured, but simulated as by tutti "
      "simulate --like nccl --launch graph; docs/design/simulator.md has the errors.");
}

double bus_gbytes_per_s(const Problem& problem, const ExplainedSize& row, double us) {
  return row.whole_bytes / us * 1e-3 * simulator::bus_factor(problem.collective, problem.ranks);
}

void print_row(const Problem& problem, const ExplainedSize& row, bool compares) {
  std::printf("%12.0f  %-18s %-8s %8u %11.1f %10.2f", row.block_bytes, std::string(row.choice.algorithm).c_str(),
              name(row.choice.protocol), row.choice.channels, row.us, bus_gbytes_per_s(problem, row, row.us));
  if (compares && row.nccl) {
    const std::string origin = row.nccl->source == 0 ? "m" : "[" + std::to_string(row.nccl->source) + "]";
    std::printf(" %11.1f %-3s %10.2f %8.2f", row.nccl->us, origin.c_str(), bus_gbytes_per_s(problem, row, row.nccl->us),
                row.nccl->us / row.us);
  } else if (compares) {
    std::printf(" %11s %-3s %10s %8s", "-", "", "-", "-");
  }
  std::printf("\n");
}

void print_text(const SizesRequest& request, const ExplainedSizes& sizes) {
  const Problem& problem = request.query.problem;
  std::printf("%s on %s, %s buffers, calls in a graph\n%s\n", describe(problem).c_str(), request.topology.c_str(),
              request.query.mapped ? "mapped" : "private", kNotMeasured);
  if (!request.environment.empty()) std::printf("%s\n", request.environment.c_str());
  const ExplainedSize& first = sizes.rows.front();
  if (first.whole_bytes > first.block_bytes)
    std::printf("Sizes are blocks; nccl-tests count %.0f times as much.\n", first.whole_bytes / first.block_bytes);
  std::printf("\n%12s  %-18s %-8s %8s %11s %10s%s\n", "bytes", "algorithm", "protocol", "channels", "predicted",
              "bus GB/s", request.compares ? "        NCCL       bus GB/s    ratio" : "");
  for (const ExplainedSize& row : sizes.rows) print_row(problem, row, request.compares);
  std::printf("%s", wrapped("Times in us, simulated as by tutti simulate --launch graph." +
                                std::string(request.compares ? " ratio: NCCL's time divided by Tutti's." : ""),
                            0, 0)
                        .c_str());
  for (const std::string& note : sizes.notes) std::printf("%s", wrapped(note, 0, 0).c_str());
  for (std::size_t i = 0; i < sizes.sources.size(); ++i)
    std::printf("[%zu] %s\n", i + 1, std::string(sizes.sources[i]).c_str());
  std::printf(
      "\nTutti's times rest on these constants (docs/design/gpu-data-path.md), and on the links of "
      "docs/design/simulator.md:\n");
  for (const GpuConstant& each : gpu_constants())
    std::printf("  %-42s %6g %-5s %s\n", std::string(each.name).c_str(), each.value, std::string(each.unit).c_str(),
                std::string(each.source).c_str());
}

std::string quoted(std::string_view text) { return json_quoted(std::string(text)); }

void print_json(const SizesRequest& request, const ExplainedSizes& sizes) {
  const Problem& problem = request.query.problem;
  std::printf("{\"collective\": \"%s\", \"ranks\": %u, \"topology\": %s, \"environment\": %s, \"sizes\": [",
              name(problem.collective), problem.ranks, quoted(request.topology).c_str(),
              quoted(request.environment).c_str());
  const char* comma = "";
  for (const ExplainedSize& row : sizes.rows) {
    std::printf(
        "%s\n{\"bytes\": %.0f, \"nccl_tests_bytes\": %.0f, \"algorithm\": \"%s\", \"protocol\": \"%s\", "
        "\"channels\": %u, \"predicted_us\": %.6g, \"bus_bw\": %.6g",
        comma, row.block_bytes, row.whole_bytes, std::string(row.choice.algorithm).c_str(), name(row.choice.protocol),
        row.choice.channels, row.us, bus_gbytes_per_s(problem, row, row.us));
    comma = ",";
    if (!request.compares) std::printf("}");
    else if (!row.nccl) std::printf(", \"nccl\": null}");
    else
      std::printf(", \"nccl\": {\"us\": %.6g, \"bus_bw\": %.6g, \"source\": %s}, \"ratio\": %.4g}", row.nccl->us,
                  bus_gbytes_per_s(problem, row, row.nccl->us),
                  row.nccl->source == 0 ? "null" : quoted(sizes.sources[row.nccl->source - 1]).c_str(),
                  row.nccl->us / row.us);
  }
  std::printf("],\n\"constants\": [");
  comma = "";
  for (const GpuConstant& each : gpu_constants()) {
    std::printf("%s\n{\"name\": %s, \"value\": %g, \"unit\": %s, \"source\": %s}", comma, quoted(each.name).c_str(),
                each.value, quoted(each.unit).c_str(), quoted(each.source).c_str());
    comma = ",";
  }
  std::printf("],\n\"notes\": [%s", quoted(kNotMeasured).c_str());
  for (const std::string& note : sizes.notes) std::printf(", %s", quoted(note).c_str());
  std::printf("]}\n");
}

}  // namespace

Status explain_sizes(const CallModel& model, const SizesRequest& request) {
  Query query = request.query;
  ChosenTimes times(model, query.problem);
  ExplainedSizes sizes;
  sizes.notes = notes_on_hosts(model.network());
  for (const double bytes : request.sizes) {
    query.block_bytes = static_cast<std::uint64_t>(bytes);
    const std::vector<Candidate> found = TUTTI_TRY(candidates(query));
    if (found.empty())
      return unsupported(
          "no algorithm satisfies these options; give one size to --bytes, without --compare, for the "
          "reasons");
    ExplainedSize row;
    row.block_bytes = bytes;
    row.whole_bytes = whole_bytes(query);
    row.choice = found.front().choice;
    row.us = TUTTI_TRY(times.simulate(row.choice, row.whole_bytes));
    sizes.rows.push_back(std::move(row));
  }
  if (request.compares) compare(model, query.problem, sizes);
  if (request.json) print_json(request, sizes);
  else print_text(request, sizes);
  return {};
}

}  // namespace tutti::tool
