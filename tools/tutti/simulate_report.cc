#include "tools/tutti/simulate_report.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "src/base/counted.h"
#include "src/base/json.h"

namespace tutti::tool {
namespace {

bool is_compressed(const SimulateRequest& request) {
  return !request.compression.empty() || request.max_relative_error > 0;
}

// Parts of the critical path by name, without those that are zero.
std::vector<std::pair<std::string, double>> parts_of(const simulator::Chain& chain) {
  std::vector<std::pair<std::string, double>> parts = {{"launch", chain.launch},
                                                       {"channels", chain.channel},
                                                       {"hops", chain.hops},
                                                       {"slots", chain.slots},
                                                       {"queues", chain.queues}};
  for (std::size_t kind = 0; kind < simulator::kLinkKinds; ++kind)
    parts.emplace_back(name(static_cast<LinkKind>(kind)), chain.links[kind]);
  std::erase_if(parts, [](const auto& part) { return part.second <= 0; });
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return parts;
}

void show_row(const SimulatedRun& run, bool shows_compression) {
  std::printf("%14.0f %12.2f %9.2f %9.2f  %-18s %-6s %4u %8u", run.call.bytes, run.outcome.time_us,
              run.outcome.algorithm_gbytes_per_s, run.outcome.bus_gbytes_per_s, run.algorithm.c_str(),
              name(run.call.protocol), run.call.channels, run.outcome.chunks);
  if (shows_compression) std::printf(" %s", name(run.call.compression));
  std::printf("\n");
}

void show_details(const SimulatedRun& run) {
  const simulator::Outcome& outcome = run.outcome;
  for (const simulator::KindUse& use : outcome.links)
    std::printf("# %-8s busiest: %s, busy %.2f %% of the time; %.0f bytes on all links\n", name(use.kind),
                use.busiest.c_str(), use.busiest_part * 100, use.bytes);
  std::printf("# critical path:");
  const char* separator = " ";
  for (const auto& [part, us] : parts_of(outcome.chain)) {
    std::printf("%s%s %.1f %%", separator, part.c_str(), us / outcome.time_us * 100);
    separator = ", ";
  }
  std::printf("\n# %llu simulated events, %.2f million per second\n", static_cast<unsigned long long>(outcome.events),
              static_cast<double>(outcome.events) / std::max(run.seconds, 1e-9) * 1e-6);
}

void show_json(const SimulatedRun& run) {
  const simulator::Outcome& outcome = run.outcome;
  std::printf(
      "      {\"algorithm\": %s, \"protocol\": %s, \"compression\": %s, \"channels\": %u, \"chunks\": %u, "
      "\"simulated_chunks\": %u,\n",
      json_quoted(run.algorithm).c_str(), json_quoted(name(run.call.protocol)).c_str(),
      json_quoted(name(run.call.compression)).c_str(), run.call.channels, outcome.chunks, outcome.simulated_chunks);
  std::printf("       \"time_us\": %.6g, \"alg_bw\": %.6g, \"bus_bw\": %.6g, \"events\": %llu, \"seconds\": %.4g,\n",
              outcome.time_us, outcome.algorithm_gbytes_per_s, outcome.bus_gbytes_per_s,
              static_cast<unsigned long long>(outcome.events), run.seconds);
  std::printf("       \"critical_path_us\": {");
  const char* separator = "";
  for (const auto& [part, us] : parts_of(outcome.chain)) {
    std::printf("%s%s: %.6g", separator, json_quoted(part).c_str(), us);
    separator = ", ";
  }
  std::printf("},\n       \"links\": [");
  separator = "";
  for (const simulator::KindUse& use : outcome.links) {
    std::printf("%s{\"kind\": %s, \"busiest\": %s, \"busiest_part\": %.6g, \"bytes\": %.6g}", separator,
                json_quoted(name(use.kind)).c_str(), json_quoted(use.busiest).c_str(), use.busiest_part, use.bytes);
    separator = ", ";
  }
  std::printf("],\n       \"notes\": [");
  separator = "";
  for (const std::string& note : outcome.notes) {
    std::printf("%s%s", separator, json_quoted(note).c_str());
    separator = ", ";
  }
  std::printf("]}");
}

}  // namespace

std::string words_of(std::string_view algorithm, const simulator::Call& call) {
  const std::string compressed =
      call.compression == CompressionFormat::none ? "" : std::string("/") + name(call.compression);
  return std::string(algorithm) + "/" + name(call.protocol) + compressed;
}

void begin_report(const SimulateRequest& request, const simulator::Network& network, const simulator::Costs& costs) {
  std::printf("# %s, %s on %s of %s; cost model %.*s, launch %s\n", name(request.collective),
              counted(network.ranks(), "rank").c_str(), counted(network.cluster().hosts, "host").c_str(),
              request.topology.c_str(), static_cast<int>(costs.name.size()), costs.name.data(), name(request.launch));
  std::printf("#%13s %12s %9s %9s  %-18s %-6s %4s %8s%s\n", "size (B)", "time (us)", "algbw", "busbw", "algorithm",
              "proto", "chan", "chunks", is_compressed(request) ? " compression" : "");
}

void report(const SimulateRequest& request, const std::vector<SimulatedRun>& runs) {
  const bool one_size = request.bytes.size() == 1;
  for (std::size_t i = 0; i < (one_size ? runs.size() : 1); ++i) show_row(runs[i], is_compressed(request));
  if (one_size) show_details(runs[0]);
  std::fflush(stdout);
}

void end_report(const std::vector<std::vector<SimulatedRun>>& sizes, const Missing& missing) {
  std::set<std::string> reported;
  for (const std::vector<SimulatedRun>& runs : sizes)
    for (const std::string& note : runs[0].outcome.notes)
      if (reported.insert(note).second && reported.size() <= 8) std::printf("# note: %s\n", note.c_str());
  const char* separator = "# skipped because they take long to simulate (--algorithm simulates one): ";
  for (const LeftOut& each : missing.left_out) {
    std::printf("%s%s", separator, each.what.c_str());
    if (each.from_bytes > 0 && sizes.size() > 1) std::printf(" from %.0f bytes", each.from_bytes);
    separator = ", ";
  }
  if (!missing.left_out.empty()) std::printf("\n");
  for (const std::string& what : missing.failed) std::printf("# failed: %s\n", what.c_str());
}

void report_json(const SimulateRequest& request, const simulator::Network& network,
                 const std::vector<std::vector<SimulatedRun>>& sizes, const Missing& missing) {
  std::printf("{\"collective\": %s, \"topology\": %s, \"hosts\": %u, \"ranks\": %u, \"sizes\": [\n",
              json_quoted(name(request.collective)).c_str(), json_quoted(request.topology).c_str(),
              network.cluster().hosts, network.ranks());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::printf("  {\"bytes\": %.0f, \"runs\": [\n", sizes[i][0].call.bytes);
    for (std::size_t j = 0; j < sizes[i].size(); ++j) {
      show_json(sizes[i][j]);
      std::printf(j + 1 < sizes[i].size() ? ",\n" : "\n");
    }
    std::printf(i + 1 < sizes.size() ? "  ]},\n" : "  ]}\n");
  }
  std::printf("], \"left_out\": [");
  const char* separator = "";
  for (const LeftOut& each : missing.left_out) {
    std::printf("%s{\"what\": %s, \"from_bytes\": %.0f}", separator, json_quoted(each.what).c_str(), each.from_bytes);
    separator = ", ";
  }
  std::printf("], \"failed\": [");
  separator = "";
  for (const std::string& what : missing.failed) {
    std::printf("%s%s", separator, json_quoted(what).c_str());
    separator = ", ";
  }
  std::printf("]}\n");
}

}  // namespace tutti::tool
