// Description of the command explain.
#include "src/topology/presets.h"
#include "tools/tutti/names.h"
#include "tools/tutti/options.h"

namespace tutti::tool {
namespace {

std::vector<OptionRow> options_of_explain() {
  return {
      collective_row("all_reduce"),
      {"bytes", kBytes, "SIZE", kRequired,
       "Size of a block in bytes: 8, 64K, 1.5M, 1G (K, M, G, T are powers of 1024). A block is what a rank contributes "
       "(all_gather, gather), receives (reduce_scatter, scatter) or sends to each rank (all_to_all). nccl-tests and "
       "tutti simulate count a rank's larger buffer instead; the output has both. With --topology also 8..4G: all "
       "powers of two from 8 bytes to 4 GiB, in a table of calls in a CUDA graph; times of one size are for calls "
       "outside graphs."},
      {"ranks", kRanks, "N", "sum of --groups, or of --topology", "Number of ranks, 1 to 1000000."},
      groups_row("one host", "One layout."),
      {"memory", kMemory, "KIND", "host", "Memory of the buffers: host, or cuda (GPUs)."},
      {"transport", kTransport, "NAME", "shm on one host, tcp on several",
       "Transport between ranks: shm or tcp. tcp also stands for verbs and ucx."},
      {"mapped", kMapped, nullptr, "",
       "Buffers are accessible to all ranks (tutti_mem_alloc), on one host. Without it: private memory of each rank."},
      {"cores", kCores, "N", "those of this machine; with --groups of several hosts or --link, one per rank",
       "Processor cores that all ranks share, for buffers in host memory."},
      {"link", kLink, "RATE", "the built-in estimate",
       "Bandwidth of each host's network link: 10Gbit, 800Mbit, or a number of Gbit/s."},
      {"topology", kTopology, "NAME", "this machine",
       "Machine to predict for: a vendor system (" + presets() +
           ") or a file that tutti topo --file reads. Its GPUs "
           "hold the buffers; it replaces --groups, --memory, --transport, --cores and --link."},
      {"hosts", kHosts, "N", "those of the topology", "Number of hosts of --topology."},
      nvlink_domain_row(),
      gpu_row(),
      {"algorithm", kAlgorithm, "NAME", "all", "Consider only this algorithm."},
      {"protocol", kProtocol, "NAME", "all", "Consider only this protocol: " + protocol_names() + "."},
      compress_row(),
      max_relative_error_row(),
      type_row(),
      {"compare", kCompare, "LIBRARY", "no comparison",
       "nccl: print a table with NCCL's times, published or simulated, and the constants on which predictions rest, "
       "all "
       "for calls in a CUDA graph. Needs --topology."},
      {"tune-file", kTuneFile, "FILE", "TUTTI_TUNE_FILE",
       "Show the times that autotuning (TUTTI_TUNE=1) measured and saved in FILE."},
      {"machine", kMachine, "TEXT", "the one measured last",
       "Machine of the tune file whose times are shown: one whose name contains TEXT. tutti doctor lists the names."},
      {"json", kJson, nullptr, "", "Print JSON instead of text."},
  };
}

}  // namespace

Command describe_explain() {
  return {.name = "explain",
          .summary = "show which algorithm a call would use, the alternatives and their predicted times",
          .usage = "--bytes SIZE (--ranks N | --groups LAYOUT | --topology NAME) [options]",
          .description =
              "Predicts how a call would run on this machine, or on that of --topology. Prints the chosen "
              "algorithm and protocol with the reason, a table of all candidates with predicted times in "
              "microseconds, and the excluded algorithms with the reasons. Runs no collective.",
          .options = options_of_explain(),
          .examples = {"tutti explain --collective all_reduce --bytes 64K --ranks 2",
                       "tutti explain --collective all_reduce --bytes 16M --topology dgx-h100 --hosts 4",
                       "tutti explain --collective all_reduce --bytes 8..4G --topology dgx-h100 --compare nccl"},
          .environment =
              "options take precedence over TUTTI_TRANSPORT, TUTTI_ALGORITHM (NCCL_ALGO), TUTTI_PROTOCOL "
              "(NCCL_PROTO), TUTTI_COMPRESS, TUTTI_MAX_RELATIVE_ERROR and TUTTI_TUNE_FILE. TUTTI_COMPRESS_ROUNDING "
              "and TUTTI_CHANNELS are honored as well. Tuner plugins are not used.",
          .appendix = "Algorithms of each collective:" + all_algorithms() + "\n"};
}

}  // namespace tutti::tool
