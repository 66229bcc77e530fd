#include "tools/tutti/like_nccl.h"

#include <algorithm>
#include <array>
#include <string>

#include "algorithms/catalogue.h"
#include "tools/simulator/nccl_protocol.h"

namespace tutti::tool {
namespace {

std::uint32_t sm_of(const simulator::Network& network) {
  const Topology& host = network.cluster().host;
  return host.nodes[host.all(NodeKind::gpu).front()].sm;
}

}  // namespace

const Algorithm* plan_of_nvls(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return find(collective, "two_shot_mapped");
    case Collective::all_gather:
    case Collective::reduce_scatter: return find(collective, "direct_mapped");
    default: return nullptr;
  }
}

Status check_nvls(const SimulateRequest& request) {
  if (plan_of_nvls(request.collective) == nullptr)
    return unsupported(std::string("NCCL has no nvls for ") + name(request.collective));
  if (!request.compression.empty() && request.compression != name(CompressionFormat::none))
    return unsupported("nvls does not support compression: switches add uncompressed numbers");
  if (!request.protocol.empty() && request.protocol != name(Protocol::simple))
    return unsupported("nvls does not support " + request.protocol +
                       ", because switches cannot add messages with flags; use " + name(Protocol::simple));
  return {};
}

// Follows calcCollChunking() of NCCL's src/enqueue.cc. NCCL limits the number of heads, the ranks that pull data for
// all. With more ranks than heads, the share of a rank in a chunk is smaller.
void cut_as_nvls(simulator::Call& call, const simulator::Network& network) {
  constexpr std::uint32_t kChannelsOfHopper = 16, kChannelsOfBlackwell = 24;
  constexpr double kLongest = 131072;
  struct Shorter {
    double chunks, chunk_bytes;  // Chunk size of calls with fewer chunks than this.
  };
  constexpr std::array<Shorter, 3> kShorter = {{{64, 65536}, {8, 32768}, {2, 16384}}};
  call.channels = sm_of(network) >= 100 ? kChannelsOfBlackwell : kChannelsOfHopper;
  const double heads = std::min(network.ranks(), simulator::kMaxNvlsHeads);
  double chunk_bytes = kLongest;
  for (const Shorter& each : kShorter)
    if (call.bytes < each.chunks * call.channels * heads * chunk_bytes)
      chunk_bytes = std::min(chunk_bytes, each.chunk_bytes);
  call.chunk_bytes = chunk_bytes * heads / network.ranks();
}

bool nccl_has(std::string_view algorithm) {
  return algorithm == "ring" || algorithm == "chain" || algorithm == "direct" || algorithm == kNvls;
}

Status check_nccl_has(std::string_view algorithm, Collective collective) {
  if (nccl_has(algorithm) || algorithm == "double_binary_tree") return {};
  std::string there;
  for (const std::string_view each : {std::string_view("ring"), kNvls, std::string_view("double_binary_tree"),
                                      std::string_view("chain"), std::string_view("direct")}) {
    const bool is = each == kNvls ? plan_of_nvls(collective) != nullptr : find(collective, each) != nullptr;
    if (is) there += (there.empty() ? "" : ", ") + std::string(each);
  }
  return unsupported("NCCL has no " + std::string(algorithm) + " for " + name(collective) + "; valid: " + there);
}

Result<std::string_view> nccl_algorithm(const simulator::Network& network, Collective collective, double bytes) {
  switch (collective) {
    case Collective::broadcast:
    case Collective::reduce: return std::string_view("chain");
    case Collective::gather:
    case Collective::scatter:
    case Collective::all_to_all: return std::string_view("direct");
    default: break;
  }
  if (!network.switched()) return std::string_view("ring");
  const bool nvls = TUTTI_TRY(simulator::nccl_takes_nvls(sm_of(network), collective, network.ranks(), bytes));
  return nvls ? kNvls : std::string_view("ring");
}

Result<Protocol> nccl_protocol(const simulator::Network& network, Collective collective, double bytes) {
  return simulator::nccl_protocol(sm_of(network), collective, network.ranks(), bytes);
}

}  // namespace tutti::tool
