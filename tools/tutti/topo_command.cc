#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/config.h"
#include "src/topology/describe.h"
#include "src/topology/discover/discover.h"
#include "src/topology/discover/file.h"
#include "src/topology/draw.h"
#include "src/topology/fill.h"
#include "src/topology/formats.h"
#include "src/topology/presets.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/given.h"
#include "tools/tutti/topo_rings.h"
#include "tools/tutti/topologies.h"
#include "tools/tutti/usage.h"

namespace tutti::tool {
namespace {

enum class Form { text, json, nccl, dot, svg, help };

struct TopoRequest {
  std::string file;
  std::string preset;
  std::string gpu;
  Form form = Form::text;
  std::string picture;  // Form::svg: where to.
  bool rings = false;
  std::vector<std::uint32_t> gpus;  // Of rings; none: all.
};

enum Option { kFile, kPreset, kGpu, kJson, kNccl, kDot, kSvg, kRings, kGpus, kHelp };
constexpr option kOptions[] = {
    {"file", required_argument, nullptr, kFile},
    {"preset", required_argument, nullptr, kPreset},
    {"gpu", required_argument, nullptr, kGpu},
    {"json", no_argument, nullptr, kJson},
    {"nccl", no_argument, nullptr, kNccl},
    {"dot", no_argument, nullptr, kDot},
    {"svg", required_argument, nullptr, kSvg},
    {"rings", no_argument, nullptr, kRings},
    {"gpus", required_argument, nullptr, kGpus},
    {"help", no_argument, nullptr, kHelp},
    {},
};

Status check(const TopoRequest& request) {
  if (request.rings && (request.form == Form::json || request.form == Form::nccl))
    return invalid_argument("--rings and --gpus are for text, --dot and --svg");
  return {};
}

Status take_form(TopoRequest& request, Form form) {
  if (request.form != Form::text) return invalid_argument("topo takes one of --json, --nccl, --dot and --svg");
  request.form = form;
  return {};
}

// `argv` begins with the command. What is not understood is named as it was written.
Result<TopoRequest> parse(int argc, char** argv) {
  TopoRequest request;
  GivenOptions given;
  opterr = 0;
  optind = 0;  // Whatever was read before; and nothing is moved, so that places stay what they are.
  for (;;) {
    const char* at = argv[std::max(optind, 1)];
    const int chosen = getopt_long(argc, argv, "+:h", kOptions, nullptr);
    if (chosen != -1) TUTTI_CHECK_OK(given.add(chosen, optarg).during(std::string("reading ") + at));
    switch (chosen) {
      case -1:
        if (optind < argc) return invalid_argument(std::string("'") + argv[optind] + "' is one argument too many");
        return request;
      case kFile: request.file = optarg; break;
      case kPreset: request.preset = optarg; break;
      case kGpu: request.gpu = optarg; break;
      case kJson: TUTTI_CHECK_OK(take_form(request, Form::json)); break;
      case kNccl: TUTTI_CHECK_OK(take_form(request, Form::nccl)); break;
      case kDot: TUTTI_CHECK_OK(take_form(request, Form::dot)); break;
      case kSvg:
        TUTTI_CHECK_OK(take_form(request, Form::svg));
        request.picture = optarg;
        break;
      case kRings: request.rings = true; break;
      case kGpus:
        request.gpus = TUTTI_TRY(parse_gpus(optarg));
        request.rings = true;
        break;
      case 'h':
      case kHelp: request.form = Form::help; break;
      case ':': return invalid_argument(std::string(at) + " wants a value after it");
      default: return invalid_argument(std::string("topo has no option ") + at);
    }
  }
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file ? Status() : system_error("write " + path);
}

// What is set is taken for what is there, as communicators do. NCCL's variable may be left over from elsewhere.
Result<Topology> this_machine() {
  std::string left_out;
  if (!config().topo_file.empty()) {
    const auto is_it = [](const Setting& setting) {
      return std::string_view(setting.variable->name) == "TUTTI_TOPO_FILE";
    };
    const std::string source = std::find_if(settings().begin(), settings().end(), is_it)->source;
    Result<Topology> found = read_topology_file(config().topo_file);
    if (found.ok()) {
      found.value().notes.push_back(source + " is read, and this machine is not looked at");
      return found;
    }
    Status refused = std::move(found).status().during("reading " + source);
    if (source == "TUTTI_TOPO_FILE") return refused;
    left_out = refused.message();
  }
  Discovery discovery = TUTTI_TRY(discover());
  for (const SourceReport& source : discovery.sources)
    if (!source.found) discovery.topology.notes.push_back(source.source + ": " + source.words);
  if (!left_out.empty()) discovery.topology.notes.push_back(left_out);
  return std::move(discovery.topology);
}

Result<Topology> what_is_asked(const TopoRequest& request) {
  if (!request.file.empty() && !request.preset.empty()) return invalid_argument("topo takes --file or --preset");
  if (!request.preset.empty()) return preset(request.preset);
  return request.file.empty() ? this_machine() : read_topology_file(request.file);
}

std::string name_of(const TopoRequest& request) {
  if (!request.preset.empty()) return request.preset;
  return request.file.empty() ? "this machine" : request.file;
}

void warn_of_loss(const Topology& topology) {
  const bool joined = std::any_of(topology.links.begin(), topology.links.end(), [&](const Link& link) {
    return link.kind == LinkKind::nvlink && topology.nodes[link.a].host != topology.nodes[link.b].host;
  });
  if (!joined) return;
  std::fprintf(stderr,
               "tutti: NCCL's files have no NVLinks between hosts: whoever reads this one has %zu hosts that a network "
               "alone joins; --json keeps them together\n",
               topology.hosts.size());
}

}  // namespace

Status topo_command(int argc, char** argv) {
  const TopoRequest request = TUTTI_TRY(parse(argc - 1, argv + 1));
  if (request.form == Form::help) {
    print_usage();
    return {};
  }
  TUTTI_CHECK_OK(check(request));
  Topology topology = TUTTI_TRY(what_is_asked(request));
  if (!request.gpu.empty()) TUTTI_CHECK_OK(name_gpus(topology, name_of(request), request.gpu));
  fill_in(topology);
  TopoRings rings;
  if (request.rings) rings = TUTTI_TRY(rings_of(topology, request.gpus));
  std::string shown;
  switch (request.form) {
    case Form::text: shown = describe(topology) + describe_distances(topology) + rings.text; break;
    case Form::json: shown = TUTTI_TRY(write_topology_json(topology)); break;
    case Form::nccl:
      shown = TUTTI_TRY(write_nccl_xml(topology));
      warn_of_loss(topology);
      break;
    case Form::dot: shown = draw_dot(topology, rings.drawn); break;
    case Form::help: break;
    case Form::svg: return write_file(request.picture, draw_svg(topology, rings.drawn));
  }
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  return {};
}

}  // namespace tutti::tool
