#include "tools/tutti/usage.h"

#include <cstdio>
#include <string>

#include "src/topology/figures.h"
#include "src/topology/presets.h"
#include "tools/tutti/names.h"

namespace tutti::tool {
namespace {

constexpr const char* kUsage =
    "tutti plan --collective all_reduce --algorithm ring --ranks 4   what each rank does, step by step\n"
    "    [--rank R] [--root R] [--in-place] [--groups 3+5] [--fused] [--dot]\n"
    "tutti verify --all --ranks 1-64                                 proves every algorithm\n"
    "tutti verify --collective all_reduce [--algorithm ring] --ranks 1-64,100\n"
    "tutti verify --algorithm hierarchical --groups 2x2,4x8,3+5      ... for these hosts (without: for hosts of "
    "several shapes)\n"
    "tutti explain --collective all_reduce --bytes 64K --ranks 2     what a call would run as, what else, and why\n"
    "    [--groups 4x8] [--memory host|cuda] [--transport shm|tcp] [--mapped] [--cores 2]\n"
    "    [--topology dgx-h100 --hosts 4] [--gpu MODEL]               on machines that are not here, of GPUs\n"
    "    [--algorithm A] [--protocol LL|LL128|Simple] [--json]\n"
    "    [--tune-file F [--machine PART-OF-ITS-NAME]]                and what it has taken, on host memory and on "
    "GPUs\n"
    "    [--compress int8 | --max-relative-error 0.01] [--type bfloat16] [--link GBITS]\n"
    "                                                                in messages that are rounded; over a slow link\n"
    "tutti topo [--file F | --preset dgx-h100] [--gpu MODEL]         what is connected to what: this machine, a file "
    "of\n"
    "    [--json] [--nccl] [--dot] [--svg PICTURE]                   NCCL, hwloc or our own, or a system that is sold "
    "as one\n"
    "    [--rings] [--gpus 0,1,5-7]                                  the rings that GPUs would get, and what slows "
    "them\n"
    "tutti simulate --topology dgx-h100 --hosts 64 --collective all_reduce --bytes 8..1G\n"
    "    [...; tutti simulate --help]                                how long it would take on machines that are not "
    "here\n"
    "tutti doctor                                                    what this machine offers, and what is configured\n"
    "tutti --version\n"
    "tutti help                                                      this\n";

constexpr const char* kOfExplain =
    "explain --bytes: of a block, which is what a rank contributes or receives: of all_gather and gather what comes "
    "from each\n"
    "    rank, of reduce_scatter and scatter what goes to each, of all_to_all what goes from each to each; "
    "nccl-tests and\n"
    "    tutti simulate count the larger of a rank's buffers, which has a block of each rank there\n"
    "explain --cores: how many all ranks share; unless it is given, ranks on host memory share those of this machine, "
    "but for\n"
    "    --groups of several hosts and a --link: there each has its own\n"
    "explain heeds TUTTI_TRANSPORT, TUTTI_ALGORITHM, TUTTI_PROTOCOL, TUTTI_COMPRESS, TUTTI_MAX_RELATIVE_ERROR and "
    "TUTTI_TUNE_FILE,\n"
    "    unless options say otherwise\n";

}  // namespace

void print_usage() {
  std::printf(
      "%s\n%s--collective, and --algorithm of each:%s\n--preset, --topology: %s, and files for the latter\n--gpu: %s\n",
      kUsage, kOfExplain, all_algorithms().c_str(), presets().c_str(), gpu_models().c_str());
}

}  // namespace tutti::tool
