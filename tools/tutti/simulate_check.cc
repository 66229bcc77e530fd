#include "tools/tutti/simulate_check.h"

#include <algorithm>
#include <string_view>

#include "algorithms/catalogue.h"
#include "src/compression/format.h"
#include "src/tuner/choose.h"
#include "tools/tutti/like_nccl.h"

namespace tutti::tool {
namespace {

// Communicators on GPUs reject the same combination.
Status check_compression_and_protocol(const SimulateRequest& request, const simulator::Network& network) {
  if (request.protocol.empty() || request.protocol == name(Protocol::simple)) return {};
  if (!requests_compression(request) || network.cluster().host.all(NodeKind::gpu).empty()) return {};
  return unsupported("--compress " + request.compression + " with --protocol " + request.protocol + ": on GPUs, " +
                     name(Protocol::simple) +
                     " is the only protocol for compressed messages; use it, or omit --protocol");
}

// Whether a network separates some ranks. The last rank is on the last host.
bool has_network(const simulator::Network& network) {
  const auto far = network.route(0, network.ranks() - 1);
  return far.ok() && far.value().links == LinkClass::network;
}

// True for "host0:mlx5_0", its two directions, and the link to it, "host0:pci 0000:00:00.0-mlx5_0".
bool is_of_port(const std::string& link, const Topology& host) {
  const std::string_view local = std::string_view(link).substr(std::min(link.find(':') + 1, link.size()));
  return std::any_of(host.nodes.begin(), host.nodes.end(), [&](const Node& node) {
    if (node.kind != NodeKind::nic) return false;
    if (local.ends_with("-" + node.name)) return true;
    if (!local.starts_with(node.name)) return false;
    const std::string_view rest = local.substr(node.name.size());
    return rest.empty() || std::string_view(" -+").find(rest.front()) != std::string_view::npos;
  });
}

Status check_within_a_box(const SimulateRequest& request, const simulator::Network& network) {
  if (has_network(network)) return {};
  const char* const words = " applies to the network between hosts: add --hosts";
  if (!request.network_choice.empty()) return invalid_argument(request.network_choice + words);
  for (const simulator::Fault& fault : request.cluster.faults)
    if (is_of_port(fault.link, network.cluster().host))
      return invalid_argument((fault.rate == 0 ? "--fail " : "--slow ") + fault.link + words);
  return {};
}

// Options that have no meaning for the named algorithm.
Status check_of_algorithm(const SimulateRequest& request) {
  const std::string& algorithm = request.algorithm;
  if (algorithm.empty()) return {};
  const bool mapped = algorithm.ends_with("_mapped");
  if (request.slots > 0 && (accesses_peers(algorithm) || algorithm == kNvls))
    return invalid_argument("--slots: " + algorithm + " accesses memory of peers, without slots");
  if (request.chunk_bytes > 0 && mapped)
    return invalid_argument("--chunk: " + algorithm + " accesses memory of peers, without chunks");
  if (request.asks_for_rings && !uses_rank_order(algorithm))
    return invalid_argument("--rings applies to rings, chains and trees of hosts, not to " + algorithm);
  return {};
}

// True if the ranks can only use Simple, unless the request names a protocol.
bool has_only_simple(const SimulateRequest& request, const simulator::Network& network) {
  const bool on_devices = !network.cluster().host.all(NodeKind::gpu).empty();
  return on_devices && request.kernels == simulator::Kernels::tutti && has_network(network);
}

// Calls to which a figure of a launch mode applies, if not to those of the request; else "".
std::string other_launch(const std::string& figure, simulator::LaunchMode launch) {
  const std::string many = simulator::name(simulator::LaunchMode::eager_many);
  const std::string mode = figure.starts_with("launch_us.") ? figure.substr(figure.find('.') + 1)
                           : figure.starts_with("launch_")  ? many
                                                            : "";
  return mode.empty() || mode == simulator::name(launch) ? "" : "calls with --launch " + mode;
}

// Protocol to which a figure applies, if not to one of the request; else "". Free slots are signalled by a hop of LL.
std::string other_protocol(const std::string& figure, const SimulateRequest& request,
                           const simulator::Network& network) {
  const std::string last = figure.substr(figure.rfind('.') + 1);
  const bool of_protocol = last == "Simple" || last == "LL" || last == "LL128";
  if (!of_protocol || (figure.starts_with("hop_us.") && last == "LL")) return "";
  const std::string used = request.protocol.empty() && has_only_simple(request, network) ? "Simple" : request.protocol;
  return used.empty() || used == last ? "" : last;
}

bool has_lanes(const simulator::Program& program, LinkClass links) {
  return std::any_of(program.lanes.begin(), program.lanes.end(),
                     [&](const simulator::LaneLinks& lane) { return lane.route.links == links; });
}

// Calls to which a figure applies, if it is known to have no effect on those of the request; else "".
std::string other_calls(const std::string& figure, const SimulateRequest& request, const simulator::Network& network,
                        const std::vector<CheckedProgram>& programs) {
  const auto is_for = [&](std::string_view stem) { return figure.starts_with(stem); };
  const auto any_program = [&](auto has) { return std::any_of(programs.begin(), programs.end(), has); };
  if (figure.find(".network") != std::string::npos && !has_network(network)) return "the network between hosts";
  for (const auto& [stem, links] :
       {std::pair("hop_us.memory", LinkClass::memory), std::pair("hop_us.pci", LinkClass::pci),
        std::pair("hop_us.nvlink", LinkClass::nvlink)})
    if (is_for(stem) && !any_program([&](const CheckedProgram& each) { return has_lanes(*each.program, links); }))
      return "messages over other links";
  if (is_for("multicast") && !any_program([](const CheckedProgram& each) { return each.program->multicast; }))
    return "nvls (--like nccl)";
  const auto starts_late = [](const CheckedProgram& each) {
    return each.algorithm.ends_with("_mapped") && (!each.program->multicast || each.program->names_all);
  };
  if (is_for("mapped_us") && !any_program(starts_late)) return "algorithms that access buffers of peers";
  const bool compressed = !request.compression.empty() || request.max_relative_error > 0;
  if ((is_for("encode_") || is_for("decode_")) && !compressed) return "compressed messages (--compress)";
  const bool chains = has_root(request.collective);
  if ((is_for("channel_bytes") || is_for("chunk_bytes") || is_for("chain_chunk_bytes")) && !request.like_nccl)
    return "calls with --like nccl";
  if (is_for(chains ? "chunk_bytes" : "chain_chunk_bytes"))
    return chains ? "collectives without a root" : "collectives with a root";
  const std::string launch = other_launch(figure, request.launch);
  return launch.empty() ? other_protocol(figure, request, network) : launch;
}

}  // namespace

bool requests_compression(const SimulateRequest& request) {
  if (request.compression.empty()) return false;
  const Result<CompressionFormat> compression = parse_compression(request.compression);
  return compression.ok() && compression.value() != CompressionFormat::none &&
         compressed_bytes(compression.value()) < kCompressionGroup * size_of(request.type);
}

Status check_on(const SimulateRequest& request, const simulator::Network& network, const simulator::Costs& costs) {
  TUTTI_CHECK_OK(check_within_a_box(request, network));
  TUTTI_CHECK_OK(check_of_algorithm(request));
  if (request.channels > costs.max_channels)
    return invalid_argument("--channels " + std::to_string(request.channels) + ": must be at most " +
                            std::to_string(costs.max_channels) + " for " + std::string(costs.name));
  if (request.root >= network.ranks())
    return invalid_argument("--root " + std::to_string(request.root) + ": must be from 0 to " +
                            std::to_string(network.ranks() - 1));
  const bool several = network.ranks() > network.ranks_per_host() && !network.switched();
  if (request.like_nccl && (several || costs.max_channels == 1))
    return unsupported(
        "--like nccl needs GPUs of one host, or joined by NVSwitches: NCCL's choice between hosts is not modeled");
  if (request.algorithm.empty() && network.ranks() > kMaxRanksCompared)
    return unsupported(std::to_string(network.ranks()) +
                       " ranks take too long to simulate with every algorithm: name one with "
                       "--algorithm (up to " +
                       std::to_string(kMaxRanksCompared) + " ranks, all are compared)");
  TUTTI_CHECK_OK(check_compression_and_protocol(request, network));
  if (request.trace.empty()) return {};
  if (request.algorithm.empty()) return invalid_argument("--trace needs one --algorithm");
  return {};
}

std::vector<std::string> notes_on(const SimulateRequest& request, const simulator::Network& network,
                                  const std::vector<CheckedProgram>& programs) {
  std::vector<std::string> notes;
  const simulator::Cluster& cluster = network.cluster();
  const bool climbs = std::any_of(programs.begin(), programs.end(), [](const CheckedProgram& checked) {
    return std::any_of(checked.program->lanes.begin(), checked.program->lanes.end(),
                       [](const simulator::LaneLinks& lane) { return lane.route.shared > 0; });
  });
  if (cluster.oversubscription > 1 && !climbs)
    notes.emplace_back("--oversubscription has no effect: no message leaves its leaf switch");
  if (cluster.tiers == 3 && cluster.hosts <= cluster.hosts_per_leaf)
    notes.push_back("--tiers 3 has the effect of 2: at most " + std::to_string(cluster.hosts_per_leaf) +
                    " hosts are on the same leaf switches (--hosts-per-leaf)");
  for (const auto& [figure, value] : request.figures) {
    const std::string calls = other_calls(figure, request, network, programs);
    if (!calls.empty()) notes.push_back("--figure " + figure + " has no effect: it applies to " + calls);
  }
  const auto is_ordered = [](const CheckedProgram& checked) { return checked.ordered; };
  if (request.asks_for_rings && request.rings > 0 && std::none_of(programs.begin(), programs.end(), is_ordered))
    notes.emplace_back("--rings has no effect: rings are in the order of ranks");
  if (!request.compression.empty() && request.compression != name(CompressionFormat::none) &&
      !requests_compression(request))
    notes.push_back("not compressed: --compress " + request.compression + " is not shorter than " + name(request.type));
  return notes;
}

}  // namespace tutti::tool
