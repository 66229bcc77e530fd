// Descriptions of the commands about machines, topo and doctor; and the list of all commands.
#include <algorithm>
#include <array>
#include <string_view>

#include "src/topology/presets.h"
#include "tools/tutti/options.h"

namespace tutti::tool {

Command describe_topo() {
  return {
      .name = "topo",
      .summary = "show or draw the topology of this machine, of a file or of a vendor system",
      .usage = "[--file FILE | --preset NAME] [--gpu MODEL] [--json | --nccl | --dot | --svg FILE] [options]",
      .description =
          "Prints processors, GPUs, network ports and the links between them with their bandwidths, and the "
          "path between each pair of GPUs and ports in NCCL's terms (NV, PIX, PXB, PHB, SYS).",
      .options = {{"file", kFile, "FILE", "this machine",
                   "Read the topology from FILE: XML of NCCL (NCCL_TOPO_DUMP_FILE) or hwloc (lstopo), or JSON of "
                   "tutti topo --json."},
                  {"preset", kPreset, "NAME", "this machine", "Show a vendor system: " + presets() + "."},
                  gpu_row(),
                  {"json", kJson, nullptr, "", "Print JSON, which --file can read."},
                  {"nccl", kNccl, nullptr, "", "Print XML for NCCL_TOPO_FILE. It has no NVLinks between hosts."},
                  {"dot", kDot, nullptr, "", "Print a graph in the DOT language of Graphviz."},
                  {"svg", kSvg, "FILE", "text on standard output", "Write a picture in SVG to FILE."},
                  {"rings", kRings, nullptr, "",
                   "Add the rings of GPUs that collectives would use: within each host, and between hosts through "
                   "network ports. Not with --json or --nccl."},
                  {"gpus", kGpus, "LIST", "all GPUs", "Rings of these GPUs only, by index: 0,1,5-7. Implies --rings."}},
      .examples = {"tutti topo --svg topology.svg", "tutti topo --preset dgx-h100 --rings --gpus 0,2,5"},
      .environment = "TUTTI_TOPO_FILE (NCCL_TOPO_FILE) replaces the topology of this machine.",
      .appendix = ""};
}

Command describe_doctor() {
  return {.name = "doctor",
          .summary = "check this machine and its settings, and list all TUTTI_ variables",
          .usage = "[--json]",
          .description =
              "Prints what this machine offers (processors, limits, transports, GPUs, topology) and every "
              "setting with its value, source, default and meaning. Warns about settings without effect. "
              "Exits with 1 if no communicator can be created with these settings, or if libnccl.so.2 or the Python "
              "package rejects one, or if a file that a setting names cannot be used.",
          .options = {{"json", kJson, nullptr, "", "Print JSON instead of text."}},
          .examples = {"tutti doctor", "tutti doctor --json"},
          .environment = "all variables that the output lists.",
          .appendix = ""};
}

std::span<const Command> commands() {
  static const std::array<Command, 7> all = {describe_plan(),     describe_verify(), describe_explain(),
                                             describe_estimate(), describe_topo(),   describe_simulate(),
                                             describe_doctor()};
  return all;
}

const Command* find_command(std::string_view name) {
  const auto found =
      std::find_if(commands().begin(), commands().end(), [&](const Command& one) { return name == one.name; });
  return found == commands().end() ? nullptr : &*found;
}

}  // namespace tutti::tool
