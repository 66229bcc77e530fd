#include <algorithm>
#include <cstdio>
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
#include "tools/tutti/command_line.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/options.h"
#include "tools/tutti/topo_rings.h"
#include "tools/tutti/topologies.h"
#include "tools/tutti/write_file.h"

namespace tutti::tool {
namespace {

enum class Form { text, json, nccl, dot, svg };

struct TopoRequest {
  std::string file;
  std::string preset;
  std::string gpu;
  Form form = Form::text;
  std::string picture;  // Form::svg: path of the file.
  bool rings = false;
  std::vector<std::uint32_t> gpus;  // GPUs of rings; empty: all.
};

Status check(const TopoRequest& request) {
  if (request.rings && (request.form == Form::json || request.form == Form::nccl))
    return invalid_argument("--rings and --gpus exclude --json and --nccl");
  return {};
}

Status take_form(TopoRequest& request, Form form) {
  if (request.form != Form::text) return invalid_argument("only one of --json, --nccl, --dot and --svg can be given");
  request.form = form;
  return {};
}

Status apply(TopoRequest& request, int key, const std::string& value) {
  switch (key) {
    case kFile: request.file = value; break;
    case kPreset: request.preset = value; break;
    case kGpu: request.gpu = value; break;
    case kJson: return take_form(request, Form::json);
    case kNccl: return take_form(request, Form::nccl);
    case kDot: return take_form(request, Form::dot);
    case kSvg: request.picture = value; return take_form(request, Form::svg);
    case kRings: request.rings = true; break;
    case kGpus:
      request.gpus = TUTTI_TRY(parse_gpus(value));
      request.rings = true;
      break;
    default: return not_implemented();
  }
  return {};
}

Result<TopoRequest> parse(int argc, char** argv) {
  TopoRequest request;
  TUTTI_CHECK_OK(parse_options(describe_topo(), argc, argv, [&](int key, const std::string& value) {
                   return apply(request, key, value);
                 }).status());
  if (!request.file.empty() && !request.preset.empty())
    return invalid_argument("--file and --preset exclude each other");
  TUTTI_CHECK_OK(check(request));
  return request;
}

// Like communicators, reads TUTTI_TOPO_FILE instead of discovering the topology. If NCCL's variable names a file that
// cannot be read, this is only noted.
Result<Topology> this_machine() {
  std::string left_out;
  if (!config().topo_file.empty()) {
    const auto is_it = [](const Setting& setting) {
      return std::string_view(setting.variable->name) == "TUTTI_TOPO_FILE";
    };
    const std::string source = std::find_if(settings().begin(), settings().end(), is_it)->source;
    Result<Topology> found = read_topology_file(config().topo_file);
    if (found.ok()) {
      found.value().notes.push_back(source + " replaces this machine");
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

Result<Topology> requested_topology(const TopoRequest& request) {
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
               "tutti: NCCL's format has no NVLinks between hosts: in this output, only a network joins the %zu hosts; "
               "--json keeps the NVLinks\n",
               topology.hosts.size());
}

}  // namespace

Status topo_command(int argc, char** argv) {
  const TopoRequest request = TUTTI_TRY(parse(argc, argv));
  Topology topology = TUTTI_TRY(requested_topology(request));
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
    case Form::svg: return write_file(request.picture, draw_svg(topology, rings.drawn));
  }
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  return {};
}

}  // namespace tutti::tool
