// Description of the command estimate.
#include "src/topology/presets.h"
#include "tools/tutti/options.h"

namespace tutti::tool {
namespace {

std::vector<OptionRow> options_of_estimate() {
  return {
      {"parameters", kParameters, "N", kRequired,
       "Number of parameters, each with a gradient: 25M, 7B (K, M, B, T are powers of 1000)."},
      {"type", kType, "TYPE", "float32",
       "Element type of gradients: float64, float32, float16, bfloat16, float8_e4m3 or float8_e5m2."},
      {"ranks", kRanks, "N", "those of --topology",
       "Number of ranks, 2 to 1000000; with --link, each on a host of its own."},
      {"link", kLink, "RATE", "the links of --topology",
       "Bandwidth of each host's network link, with its unit: 10Gbit, 1.5Tbit, 500Mbit (powers of 1000, per second)."},
      {"topology", kTopology, "NAME", "hosts with --link",
       "Cluster to predict for: a vendor system (" + presets() +
           ") or a file that tutti topo --file reads. Its GPUs hold the gradients; it replaces --link."},
      {"hosts", kHosts, "N", "those of the topology", "Number of hosts of --topology."},
      nvlink_domain_row(),
      gpu_row(),
      {"compute", kCompute, "TIME", kRequired,
       "Time of the forward and backward pass of a micro-batch on one rank, without communication, with its unit: "
       "300ms, "
       "1.2s, 800us."},
      {"accumulate", kAccumulate, "N", "1", "Micro-batches whose gradients are added before they are communicated."},
      {"bucket", kBucket, "SIZE", "25M",
       "Maximum size in bytes of a bucket of gradients, which is one all-reduce: 25M (K, M, G, T are powers of 1024). "
       "The "
       "default is that of PyTorch's DistributedDataParallel."},
      compress_row(),
      {"overlap", kOverlap, "PERCENT", "as much as buckets allow",
       "Part of the communication that computation hides, 0% to 100%, but at most the backward pass."},
      {"json", kJson, nullptr, "", "Print JSON instead of text."},
  };
}

}  // namespace

Command describe_estimate() {
  return {.name = "estimate",
          .summary = "predict the time of a training step, its scaling efficiency and what would help",
          .usage = "--parameters N --compute TIME (--ranks N --link RATE | --topology NAME) [options]",
          .description =
              "Predicts a step of data-parallel training that averages gradients by all-reduce. Prints the time of "
              "computation, of communication, and the part of communication that computation hides; the step time; "
              "the scaling efficiency, which is computation divided by step time; and the same with single changes. "
              "Times of communication are those of tutti explain. Runs no collective.",
          .options = options_of_estimate(),
          .examples = {"tutti estimate --parameters 25M --ranks 4 --link 10Gbit --compute 300ms",
                       "tutti estimate --parameters 7B --type bfloat16 --topology dgx-h100 --hosts 4 --compute 2s"},
          .environment = "no variable has an effect.",
          .appendix = ""};
}

}  // namespace tutti::tool
