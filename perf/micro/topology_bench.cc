// Benchmarks on one core of discovery of this machine, the search for rings, merging of topologies of a thousand hosts,
// and the choice of an algorithm for a call of a new size.
//   topology_bench --benchmark_filter=choose
#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "src/topology/discover/discover.h"
#include "src/topology/presets.h"
#include "src/tuner/candidates.h"
#include "src/tuner/map_ranks.h"
#include "tests/tuner/hybrid_cube_mesh.h"

namespace tutti {
namespace {

void discover_this_machine(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(discover().ok());
}
BENCHMARK(discover_this_machine)->Unit(benchmark::kMillisecond);

// Searches rings with a rank on each GPU. With several hosts, rings use the hosts' ports.
void find_rings(benchmark::State& state, const Topology& topology, std::uint32_t hosts) {
  TopologyMerger merger;
  std::vector<RankNode> rank_nodes;
  for (std::uint32_t host = 0; host < hosts; ++host) {
    merger.add("host" + std::to_string(host), topology);
    for (const NodeId gpu : topology.all(NodeKind::gpu)) rank_nodes.push_back({host, gpu});
  }
  const MergedTopology merged = merger.take();
  for (auto _ : state) benchmark::DoNotOptimize(find_rank_rings(merged, rank_nodes).orders.size());
}
void rings_of_preset(benchmark::State& state, const char* name, std::uint32_t hosts) {
  find_rings(state, preset(name).value(), hosts);
}
void rings_of_mesh(benchmark::State& state) {
  find_rings(state, test::hybrid_cube_mesh(), static_cast<std::uint32_t>(state.range(0)));
}
BENCHMARK_CAPTURE(rings_of_preset, dgx_a100, "dgx-a100", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rings_of_preset, two_dgx_a100, "dgx-a100", 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rings_of_preset, dgx_h100, "dgx-h100", 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rings_of_preset, two_dgx_h100, "dgx-h100", 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rings_of_preset, hosts_1024, "dgx-h100", 1024)->Unit(benchmark::kMillisecond);
BENCHMARK(rings_of_mesh)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond);

// Unpacks and merges the topologies of many hosts, then searches rings. Hosts are equal, or differ slightly.
void merge_hosts(benchmark::State& state, bool alike) {
  constexpr std::uint32_t kHosts = 1024;
  std::vector<std::string> reported;
  for (std::uint32_t host = 0; host < kHosts; ++host) {
    Topology topology = preset("dgx-h100").value();
    if (!alike) topology.nodes.front().model = "of host " + std::to_string(host);
    reported.push_back(packed(topology));
  }
  for (auto _ : state) {
    TopologyMerger merger;
    std::vector<RankNode> rank_nodes;
    for (std::uint32_t host = 0; host < kHosts; ++host) {
      Topology topology = unpacked(reported[host], "a peer").value();
      for (const NodeId gpu : topology.all(NodeKind::gpu)) rank_nodes.push_back({host, gpu});
      merger.add("host" + std::to_string(host), std::move(topology));
    }
    benchmark::DoNotOptimize(find_rank_rings(merger.take(), rank_nodes).orders.size());
  }
}
BENCHMARK_CAPTURE(merge_hosts, alike, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(merge_hosts, each_its_own, false)->Unit(benchmark::kMillisecond);

// Chooses for the collective with the most candidates, at another size each time. Hosts have 8 ranks.
void choose_for(benchmark::State& state, std::uint32_t thread_blocks) {
  const auto ranks = static_cast<Rank>(state.range(0));
  const auto collective = static_cast<Collective>(state.range(1));
  Query query;
  query.problem = {.collective = collective, .ranks = ranks, .groups = {}};
  if (ranks > 8) query.problem.groups.emplace_back(ranks / 8, 8);
  query.network = ranks > 8;
  query.thread_blocks = thread_blocks;
  query.catalogue = catalogue(collective);
  state.SetLabel(name(collective));
  for (auto _ : state) {
    query.block_bytes += 4096;
    benchmark::DoNotOptimize(choose(query).ok());
  }
}
BENCHMARK_CAPTURE(choose_for, host, 0)->ArgsProduct({{8, 10'000}, {0, 1, 2, 3, 4, 5}})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(choose_for, device, 32)->ArgsProduct({{8, 10'000}, {0, 1, 2}})->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tutti

BENCHMARK_MAIN();
