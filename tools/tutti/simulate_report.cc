#include "tools/tutti/simulate_report.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

namespace tutti {
namespace {

// Parts of the critical path by name; what is nothing is left out.
std::vector<std::pair<std::string, double>> parts_of(const Chain& chain) {
  std::vector<std::pair<std::string, double>> parts = {{"launch", chain.launch},
                                                       {"channels", chain.channel},
                                                       {"hops", chain.hops},
                                                       {"slots", chain.slots},
                                                       {"queues", chain.queues}};
  for (std::size_t kind = 0; kind < kLinkKinds; ++kind)
    parts.emplace_back(name(static_cast<LinkKind>(kind)), chain.links[kind]);
  std::erase_if(parts, [](const auto& part) { return part.second <= 0; });
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return parts;
}

void show_row(const SimulatedRun& run) {
  std::printf("%14.0f %12.2f %9.2f %9.2f  %-18s %-6s %4u %8u\n", run.call.bytes, run.outcome.time_us,
              run.outcome.algorithm_gbytes_per_s, run.outcome.bus_gbytes_per_s, run.algorithm.c_str(),
              name(run.call.protocol), run.call.channels, run.outcome.pieces);
}

void show_details(const SimulatedRun& run) {
  const Outcome& outcome = run.outcome;
  for (const KindUse& use : outcome.links)
    std::printf("# %-8s %6.2f %% of the time on the busiest, %s; %.4g bytes in all\n", name(use.kind),
                use.busiest_part * 100, use.busiest.c_str(), use.bytes);
  std::printf("# critical path:");
  const char* separator = " ";
  for (const auto& [part, us] : parts_of(outcome.chain)) {
    std::printf("%s%s %.1f %%", separator, part.c_str(), us / outcome.time_us * 100);
    separator = ", ";
  }
  std::printf("\n# %llu events, %.2f million a second\n", static_cast<unsigned long long>(outcome.events),
              static_cast<double>(outcome.events) / std::max(run.seconds, 1e-9) * 1e-6);
}

std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') made += '\\';
    made += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return made + "\"";
}

void show_json(const SimulatedRun& run) {
  const Outcome& outcome = run.outcome;
  std::printf(
      "      {\"algorithm\": %s, \"protocol\": %s, \"channels\": %u, \"pieces\": %u, \"simulated_pieces\": %u,\n",
      quoted(run.algorithm).c_str(), quoted(name(run.call.protocol)).c_str(), run.call.channels, outcome.pieces,
      outcome.simulated_pieces);
  std::printf("       \"time_us\": %.6g, \"alg_bw\": %.6g, \"bus_bw\": %.6g, \"events\": %llu, \"seconds\": %.4g,\n",
              outcome.time_us, outcome.algorithm_gbytes_per_s, outcome.bus_gbytes_per_s,
              static_cast<unsigned long long>(outcome.events), run.seconds);
  std::printf("       \"critical_path_us\": {");
  const char* separator = "";
  for (const auto& [part, us] : parts_of(outcome.chain)) {
    std::printf("%s%s: %.6g", separator, quoted(part).c_str(), us);
    separator = ", ";
  }
  std::printf("},\n       \"links\": [");
  separator = "";
  for (const KindUse& use : outcome.links) {
    std::printf("%s{\"kind\": %s, \"busiest\": %s, \"busiest_part\": %.6g, \"bytes\": %.6g}", separator,
                quoted(name(use.kind)).c_str(), quoted(use.busiest).c_str(), use.busiest_part, use.bytes);
    separator = ", ";
  }
  std::printf("],\n       \"notes\": [");
  separator = "";
  for (const std::string& note : outcome.notes) {
    std::printf("%s%s", separator, quoted(note).c_str());
    separator = ", ";
  }
  std::printf("]}");
}

}  // namespace

void begin_report(const SimulateRequest& request, const Network& network, const Costs& costs) {
  std::printf("# %s of %u ranks on %u hosts as %s, by the figures of %.*s; launched %s\n", name(request.collective),
              network.ranks(), network.cluster().hosts, request.topology.c_str(), static_cast<int>(costs.name.size()),
              costs.name.data(), name(request.launch));
  std::printf("#%13s %12s %9s %9s  %-18s %-6s %4s %8s\n", "size (B)", "time (us)", "algbw", "busbw", "algorithm",
              "proto", "chan", "pieces");
}

void report(const SimulateRequest& request, const std::vector<SimulatedRun>& runs) {
  const bool one_size = request.bytes.size() == 1;
  for (std::size_t i = 0; i < (one_size ? runs.size() : 1); ++i) show_row(runs[i]);
  if (one_size) show_details(runs[0]);
  std::fflush(stdout);
}

void end_report(const std::vector<std::vector<SimulatedRun>>& sizes, const std::string& left_out,
                const std::set<std::string>& failed) {
  std::set<std::string> told;
  for (const std::vector<SimulatedRun>& runs : sizes)
    for (const std::string& note : runs[0].outcome.notes)
      if (told.insert(note).second && told.size() <= 8) std::printf("# note: %s\n", note.c_str());
  if (!left_out.empty()) std::printf("# left out, as they have too many steps to be compared: %s\n", left_out.c_str());
  for (const std::string& what : failed) std::printf("# failed: %s\n", what.c_str());
}

void report_json(const SimulateRequest& request, const Network& network,
                 const std::vector<std::vector<SimulatedRun>>& sizes, const std::set<std::string>& failed) {
  std::printf("{\"collective\": %s, \"topology\": %s, \"hosts\": %u, \"ranks\": %u, \"sizes\": [\n",
              quoted(name(request.collective)).c_str(), quoted(request.topology).c_str(), network.cluster().hosts,
              network.ranks());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::printf("  {\"bytes\": %.0f, \"runs\": [\n", sizes[i][0].call.bytes);
    for (std::size_t j = 0; j < sizes[i].size(); ++j) {
      show_json(sizes[i][j]);
      std::printf(j + 1 < sizes[i].size() ? ",\n" : "\n");
    }
    std::printf(i + 1 < sizes.size() ? "  ]},\n" : "  ]}\n");
  }
  std::printf("], \"failed\": [");
  const char* separator = "";
  for (const std::string& what : failed) {
    std::printf("%s%s", separator, quoted(what).c_str());
    separator = ", ";
  }
  std::printf("]}\n");
}

}  // namespace tutti
