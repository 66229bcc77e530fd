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
#include "tools/tutti/explain_report.h"
#include "tools/tutti/help.h"
#include "tools/tutti/nccl_times.h"

namespace tutti::tool {
namespace {

constexpr const char* kNotMeasured =
    "No time between GPUs was measured: Tutti has run on one GPU that several ranks shared.";

constexpr simulator::LaunchMode kLaunch = simulator::LaunchMode::graph;

struct ComparedTime {
  double us = 0;
  std::size_t source = 0;  // Number of a published source, from 1; 0: simulated.
};

struct SimulatedChoice {
  Choice choice;
  double us = 0;
};

struct ExplainedSize {
  double block_bytes = 0, whole_bytes = 0;
  SimulatedChoice chosen;
  std::optional<SimulatedChoice> faster;  // The fastest candidate, if it is faster than the chosen one.
  std::size_t not_compared = 0;           // Candidates that take long to simulate.
  std::optional<ComparedTime> nccl;
};

struct ExplainedSizes {
  std::vector<ExplainedSize> rows;
  std::vector<std::string_view> sources;  // Published times of NCCL.
  std::vector<std::string> notes;
};

// Candidates with more events are not compared with the choice: each would add more than 20 ms to a row.
constexpr std::uint64_t kMaxEventsOfRow = 50'000;

// Times of the library's choices and of the other candidates, in a graph.
class CandidateTimes {
 public:
  CandidateTimes(const CallModel& model, const Problem& problem) : model_(model), problem_(problem) {}

  Result<double> simulate(const Choice& choice, double whole_bytes) {
    std::optional<simulator::Simulation>& simulation = simulations_[choice.algorithm];
    if (!simulation) simulation = TUTTI_TRY(prepare(choice.algorithm, simulator::Limits().program.max_steps));
    const simulator::Outcome outcome = TUTTI_TRY(simulation->run(call_of(choice, whole_bytes)));
    return outcome.time_us;
  }

  // Sets row.faster and row.not_compared. The first candidate is the choice.
  Status compare(const std::vector<Candidate>& found, ExplainedSize& row) {
    for (std::size_t i = 1; i < found.size(); ++i) {
      const Choice& choice = found[i].choice;
      const simulator::Simulation* simulation = simulation_of(choice.algorithm);
      const simulator::Call call = call_of(choice, row.whole_bytes);
      if (simulation == nullptr || simulation->events_of(call) > kMaxEventsOfRow) {
        ++row.not_compared;
        continue;
      }
      const double us = TUTTI_TRY(simulation->run(call)).time_us;
      if (us < (row.faster ? row.faster->us : row.chosen.us)) row.faster = SimulatedChoice{choice, us};
    }
    return {};
  }

 private:
  Result<simulator::Simulation> prepare(std::string_view algorithm, std::uint64_t max_steps) const {
    simulator::Limits limits;
    limits.max_events = kMaxEventsOfMany;
    limits.program.max_steps = max_steps;
    return model_.prepare(*find(problem_.collective, algorithm), problem_, limits);
  }

  // Returns null for an algorithm with too many steps.
  const simulator::Simulation* simulation_of(std::string_view algorithm) {
    const auto [found, is_new] = simulations_.try_emplace(algorithm);
    if (is_new && problem_.ranks <= kMaxRanksExplained) {
      Result<simulator::Simulation> made = prepare(algorithm, kMaxStepsOfMany);
      if (made.ok()) found->second = std::move(made).value();
    }
    return found->second ? &*found->second : nullptr;
  }

  simulator::Call call_of(const Choice& choice, double whole_bytes) const {
    simulator::Call call = model_.call_of(choice, whole_bytes);
    call.launch = kLaunch;
    return call;
  }

  const CallModel& model_;
  const Problem& problem_;
  std::map<std::string_view, std::optional<simulator::Simulation>> simulations_;
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
      "NCCL's times are for ordinary buffers. m: not measured, but simulated as by tutti simulate --like nccl --launch "
      "graph; docs/design/simulator.md has the errors.");
}

double bus_gbytes_per_s(const Problem& problem, const ExplainedSize& row, double us) {
  return row.whole_bytes / us * 1e-3 * simulator::bus_factor(problem.collective, problem.ranks);
}

void print_choice(double block_bytes, const SimulatedChoice& choice) {
  std::printf("%12.0f  %-18s %-8s %8u %11.1f", block_bytes, std::string(choice.choice.algorithm).c_str(),
              name(choice.choice.protocol), choice.choice.channels, choice.us);
}

void print_row(const Problem& problem, const ExplainedSize& row, bool compares) {
  print_choice(row.block_bytes, row.chosen);
  std::printf("%c%10.2f", row.faster ? '*' : ' ', bus_gbytes_per_s(problem, row, row.chosen.us));
  if (compares && row.nccl) {
    const std::string origin = row.nccl->source == 0 ? "m" : "[" + std::to_string(row.nccl->source) + "]";
    std::printf(" %11.1f %-3s %10.2f %8.2f", row.nccl->us, origin.c_str(), bus_gbytes_per_s(problem, row, row.nccl->us),
                row.nccl->us / row.chosen.us);
  } else if (compares) {
    std::printf(" %11s %-3s %10s %8s", "-", "", "-", "-");
  }
  std::printf("\n");
}

// Lists the fastest candidates of the sizes where the library chooses another one.
void print_faster(const std::vector<ExplainedSize>& rows) {
  if (std::none_of(rows.begin(), rows.end(), [](const ExplainedSize& row) { return row.faster.has_value(); })) return;
  std::printf("* The choice is not the fastest by these predictions. The fastest candidates:\n");
  for (const ExplainedSize& row : rows) {
    if (!row.faster) continue;
    print_choice(row.block_bytes, *row.faster);
    std::printf("\n");
  }
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
  print_faster(sizes.rows);
  for (const std::string& note : sizes.notes) std::printf("%s", wrapped(note, 0, 0).c_str());
  for (std::size_t i = 0; i < sizes.sources.size(); ++i)
    std::printf("[%zu] %s\n", i + 1, std::string(sizes.sources[i]).c_str());
  std::printf(
      "\nTutti's times rest on these constants (docs/design/gpu-predictions.md), and on the links of "
      "docs/design/simulator.md:\n");
  for (const GpuConstant& each : gpu_constants())
    std::printf("  %-42s %6g %-5s %s\n", std::string(each.name).c_str(), each.value, std::string(each.unit).c_str(),
                std::string(each.source).c_str());
}

void print_json(const SizesRequest& request, const ExplainedSizes& sizes) {
  const Problem& problem = request.query.problem;
  std::printf(
      "{\"collective\": \"%s\", \"ranks\": %u, \"topology\": %s, \"environment\": %s, \"launch\": \"%s\", "
      "\"sizes\": [",
      name(problem.collective), problem.ranks, json_quoted(request.topology).c_str(),
      json_quoted(request.environment).c_str(), simulator::name(kLaunch));
  const char* comma = "";
  for (const ExplainedSize& row : sizes.rows) {
    std::printf(
        "%s\n{\"bytes\": %.0f, \"nccl_tests_bytes\": %.0f, \"algorithm\": \"%s\", \"protocol\": \"%s\", "
        "\"channels\": %u, \"predicted_us\": %.6g, \"bus_bw\": %.6g",
        comma, row.block_bytes, row.whole_bytes, std::string(row.chosen.choice.algorithm).c_str(),
        name(row.chosen.choice.protocol), row.chosen.choice.channels, row.chosen.us,
        bus_gbytes_per_s(problem, row, row.chosen.us));
    comma = ",";
    const SimulatedChoice& fastest = row.faster ? *row.faster : row.chosen;
    std::printf(
        ", \"choice_is_fastest\": %s, \"fastest\": {\"algorithm\": \"%s\", \"protocol\": \"%s\", "
        "\"predicted_us\": %.6g}, \"not_compared\": %zu",
        row.faster ? "false" : "true", std::string(fastest.choice.algorithm).c_str(), name(fastest.choice.protocol),
        fastest.us, row.not_compared);
    if (!request.compares) std::printf("}");
    else if (!row.nccl) std::printf(", \"nccl\": null}");
    else
      std::printf(", \"nccl\": {\"us\": %.6g, \"bus_bw\": %.6g, \"source\": %s}, \"ratio\": %.4g}", row.nccl->us,
                  bus_gbytes_per_s(problem, row, row.nccl->us),
                  row.nccl->source == 0 ? "null" : json_quoted(sizes.sources[row.nccl->source - 1]).c_str(),
                  row.nccl->us / row.chosen.us);
  }
  std::printf("],\n\"constants\": [");
  comma = "";
  for (const GpuConstant& each : gpu_constants()) {
    std::printf("%s\n{\"name\": %s, \"value\": %g, \"unit\": %s, \"source\": %s}", comma,
                json_quoted(each.name).c_str(), each.value, json_quoted(each.unit).c_str(),
                json_quoted(each.source).c_str());
    comma = ",";
  }
  std::printf("],\n\"notes\": [%s", json_quoted(kNotMeasured).c_str());
  for (const std::string& note : sizes.notes) std::printf(", %s", json_quoted(note).c_str());
  std::printf("]}\n");
}

}  // namespace

Status explain_sizes(const CallModel& model, const SizesRequest& request) {
  Query query = request.query;
  CandidateTimes times(model, query.problem);
  ExplainedSizes sizes;
  sizes.notes = notes_on_hosts(model.network());
  std::size_t not_compared = 0;
  for (const double bytes : request.sizes) {
    query.block_bytes = static_cast<std::uint64_t>(bytes);
    const std::vector<Candidate> found = TUTTI_TRY(candidates(query));
    if (found.empty() && !rejection(query).empty()) return unsupported(rejection(query));
    if (found.empty())
      return unsupported(
          "no algorithm satisfies these options; give one size to --bytes, without --compare, for the "
          "reasons");
    ExplainedSize row;
    row.block_bytes = bytes;
    row.whole_bytes = whole_bytes(query);
    row.chosen.choice = found.front().choice;
    row.chosen.us = TUTTI_TRY(times.simulate(row.chosen.choice, row.whole_bytes));
    TUTTI_CHECK_OK(times.compare(found, row));
    not_compared = std::max(not_compared, row.not_compared);
    sizes.rows.push_back(std::move(row));
  }
  if (not_compared > 0)
    sizes.notes.push_back("Candidates that take long to simulate are not compared with the choice, up to " +
                          std::to_string(not_compared) + " of a size; one size in --bytes compares more.");
  if (request.compares) compare(model, query.problem, sizes);
  if (request.json) print_json(request, sizes);
  else print_text(request, sizes);
  return {};
}

}  // namespace tutti::tool
