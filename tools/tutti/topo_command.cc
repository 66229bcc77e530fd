#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "src/topology/describe.h"
#include "src/topology/discover/discover.h"
#include "src/topology/draw.h"
#include "src/topology/fill.h"
#include "src/topology/formats.h"
#include "src/topology/presets.h"
#include "tools/tutti/commands.h"
#include "tools/tutti/topologies.h"

namespace tutti {
namespace {

enum class Form { text, json, nccl, dot, svg, help };

struct TopoRequest {
  std::string file;
  std::string preset;
  std::string gpu;
  Form form = Form::text;
  std::string picture;  // Form::svg: where to.
};

enum Option { kFile, kPreset, kGpu, kJson, kNccl, kDot, kSvg, kHelp };
constexpr option kOptions[] = {
    {"file", required_argument, nullptr, kFile},
    {"preset", required_argument, nullptr, kPreset},
    {"gpu", required_argument, nullptr, kGpu},
    {"json", no_argument, nullptr, kJson},
    {"nccl", no_argument, nullptr, kNccl},
    {"dot", no_argument, nullptr, kDot},
    {"svg", required_argument, nullptr, kSvg},
    {"help", no_argument, nullptr, kHelp},
    {},
};

Status take_form(TopoRequest& request, Form form) {
  if (request.form != Form::text) return invalid_argument("topo takes one of --json, --nccl, --dot and --svg");
  request.form = form;
  return {};
}

// `argv` begins with the command. What is not understood is named as it was written.
Result<TopoRequest> parse(int argc, char** argv) {
  TopoRequest request;
  opterr = 0;
  optind = 0;  // Whatever was read before; and nothing is moved, so that places stay what they are.
  for (;;) {
    const char* at = argv[std::max(optind, 1)];
    switch (getopt_long(argc, argv, "+:h", kOptions, nullptr)) {
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
        if (request.picture.empty()) return invalid_argument("--svg wants the name of a file");
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

Result<Topology> this_machine() {
  Discovery discovery = TUTTI_TRY(discover());
  for (const SourceReport& source : discovery.sources)
    if (!source.found) discovery.topology.notes.push_back(source.source + ": " + source.words);
  return std::move(discovery.topology);
}

Result<Topology> what_is_asked(const TopoRequest& request) {
  if (!request.file.empty() && !request.preset.empty()) return invalid_argument("topo takes --file or --preset");
  if (!request.preset.empty()) return preset(request.preset);
  return request.file.empty() ? this_machine() : topology_of_file(request.file);
}

}  // namespace

Status topo_command(int argc, char** argv) {
  const TopoRequest request = TUTTI_TRY(parse(argc - 1, argv + 1));
  if (request.form == Form::help) {
    std::fputs(kUsage, stdout);
    return {};
  }
  Topology topology = TUTTI_TRY(what_is_asked(request));
  if (!request.gpu.empty()) TUTTI_CHECK_OK(set_gpu_model(topology, request.gpu));
  fill_in(topology);
  std::string shown;
  switch (request.form) {
    case Form::text: shown = describe(topology) + describe_distances(topology); break;
    case Form::json: shown = TUTTI_TRY(write_topology_json(topology)); break;
    case Form::nccl: shown = TUTTI_TRY(write_nccl_xml(topology)); break;
    case Form::dot: shown = draw_dot(topology); break;
    case Form::help: break;
    case Form::svg: return write_file(request.picture, draw_svg(topology));
  }
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  return {};
}

}  // namespace tutti
