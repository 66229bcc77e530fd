// Description of the command simulate.
#include "src/topology/presets.h"
#include "tools/tutti/names.h"
#include "tools/tutti/options.h"

namespace tutti::tool {
namespace {

std::vector<OptionRow> options_of_cluster() {
  return {
      {"topology", kTopology, "NAME", kRequired,
       "A host, or the hosts of a rack: a vendor system (" + presets() + ") or a file that tutti topo --file reads."},
      {"hosts", kHosts, "N", "1, or the hosts of the rack", "Number of hosts, all of this kind."},
      {"ranks-per-host", kRanksPerHost, "N", "one per GPU", "Number of ranks on each host."},
      nvlink_domain_row(),
      gpu_row(),
      {"rails", kRails, "N", "all", "Number of network ports of each host that are used."},
      {"tiers", kTiers, "N", "2", "Tiers of switches between hosts, 1 to 3."},
      {"hosts-per-leaf", kHostsPerLeaf, "N", "32", "Number of hosts on each leaf switch."},
      {"oversubscription", kOversubscription, "X", "1",
       "Bandwidth from hosts to a leaf switch divided by its bandwidth to the next tier, at least 1."},
      {"slow", kSlow, "LINK=X", "no slow links",
       "Reduce the bandwidth of a link to the fraction X (0.001 to 1): host3:mlx5_0=0.5, host0:gpu1=0.9.", true},
      {"fail", kFail, "PORT", "no failures",
       "Simulate a failed network port: host3:mlx5_0. Other ports carry its traffic.", true},
      {"figure", kFigure, "NAME=X", "see docs/design/simulator.md",
       "Replace a constant of the cost model (docs/design/simulator.md): hop_us.network.Simple=10.", true},
  };
}

std::vector<OptionRow> options_of_call() {
  return {
      collective_row("all_reduce"),
      {"root", kRoot, "R", "0", "Root rank of broadcast, reduce, gather or scatter."},
      {"bytes", kBytes, "SIZE", kRequired,
       "Size in bytes as nccl-tests count it (the larger buffer of a rank): 1G, or 8..16G for all powers of two from 8 "
       "bytes to 16 GiB (K, M, G, T are powers of 1024)."},
      {"algorithm", kAlgorithm, "NAME", "all",
       "Algorithm to simulate. With all, those that take long to simulate are skipped and listed."},
      {"protocol", kProtocol, "NAME", "all",
       "Protocol: " + protocol_names() +
           ". Between hosts, with --kernels tutti, all means those of the library: Simple, and LL for few algorithms."},
      compress_row(),
      max_relative_error_row(),
      type_row(),
      {"like", kLike, "LIBRARY", "Tutti",
       "nccl: choose algorithms and protocols as NCCL's own model does, including NVLS (sums in NVSwitches). For GPUs "
       "of one host or joined by NVSwitches."},
      {"kernels", kKernels, "LIBRARY", "tutti, or nccl with --like nccl",
       "Costs of GPU kernels: tutti (predicted from published constants) or nccl (fitted to published tables)."},
      {"channels", kChannels, "N", "as the library chooses",
       "Number of channels, which run parts of a call in parallel."},
      {"chunk", kChunk, "SIZE", "as the library chooses", "Size of a chunk (the largest message) in bytes: 512K."},
      {"slots", kSlots, "N", "as the library chooses", "Receive slots of a connection, 2 to 1024."},
      {"launch", kLaunch, "MODE", "eager",
       "How kernels are launched: eager (a process per GPU), eager-many (a process for several GPUs) or graph (a CUDA "
       "graph is replayed)."},
      {"jitter", kJitter, "X", "0",
       "Lengthen steps and latencies randomly: exponentially distributed, X is the mean as a fraction of each."},
      {"seed", kSeed, "N", "1", "Seed of --jitter."},
      {"rings", kRings, "N", "8",
       "Number of different rings (and trees of hosts) that channels use round-robin; 0: one, in the order of ranks."},
      {"all-ranks", kEachRank, nullptr, "",
       "Simulate every rank. Without it, ranks that behave alike are simulated once; times differ by up to 3 %, by "
       "more "
       "with --oversubscription and in peers' memory (docs/design/simulator.md)."},
      {"trace", kTrace, "FILE", "no trace",
       "Write a trace of the fastest run to FILE, for chrome://tracing or ui.perfetto.dev. Needs one --algorithm and "
       "one size."},
      {"json", kJson, nullptr, "", "Print JSON instead of text."},
  };
}

}  // namespace

Command describe_simulate() {
  std::vector<OptionRow> options = options_of_cluster();
  for (OptionRow& row : options_of_call()) options.push_back(std::move(row));
  return {.name = "simulate",
          .summary = "simulate how long a collective takes on a cluster",
          .usage = "--topology NAME --bytes SIZE [options]",
          .description =
              "Runs the plans of a collective in a simulator of links, ranks and channels. Prints the time "
              "in microseconds, algorithm and bus bandwidth in GB/s (as nccl-tests define them), the busiest "
              "link of each kind and the parts of the critical path. docs/design/simulator.md compares its times "
              "with measurements.",
          .options = std::move(options),
          .examples = {"tutti simulate --topology dgx-h100 --hosts 64 --collective all_reduce --bytes 1G",
                       "tutti simulate --topology dgx-h100 --hosts 4 --bytes 8..1G --slow host0:mlx5_0=0.5"},
          .environment = "no variable has an effect.",
          .appendix = "Algorithms of each collective:" + all_algorithms() + "\n"};
}

}  // namespace tutti::tool
