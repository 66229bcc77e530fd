#include "tools/simulator/costs.h"

#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace tutti::simulator {
namespace {

constexpr double kMinDivisor = 1e-6;  // Minimum of constants that divide, so that times stay readable.
constexpr const char* kModes[] = {"eager", "eager-many", "graph"};
constexpr const char* kClasses[] = {"memory", "nvlink", "pci", "network"};

struct Figure {
  std::string name;
  double* value;
};

// Adds the parameters of an array. Their names are "figure.index", with the name of the protocol, class or kind as
// index.
template <std::size_t size, typename NameOf>
void list(std::vector<Figure>& all, const std::string& figure, std::array<double, size>& values, NameOf name_of) {
  for (std::size_t i = 0; i < size; ++i) all.push_back({figure + "." + name_of(i), &values[i]});
}

std::vector<Figure> figures_of(Costs& costs) {
  const auto protocol = [](std::size_t i) { return std::string(name(static_cast<Protocol>(i))); };
  const auto links = [](std::size_t i) { return std::string(kClasses[i]); };
  const auto format = [](std::size_t i) { return std::string(name(static_cast<CompressionFormat>(i))); };
  const auto kind = [](std::size_t i) { return std::string(name(static_cast<LinkKind>(i))); };
  std::vector<Figure> all = {{"launch_us.eager", &costs.launch_us},
                             {"launch_us.eager-many", &costs.launch_many_us},
                             {"launch_us.graph", &costs.launch_graph_us},
                             {"launch_device_us", &costs.launch_device_us},
                             {"launch_channel_us", &costs.launch_channel_us},
                             {"mapped_us", &costs.mapped_us},
                             {"proxy_us", &costs.proxy_us},
                             {"post_us", &costs.post_us},
                             {"mapped_share", &costs.mapped_share},
                             {"fold_gbytes_per_s", &costs.fold_gbytes_per_s},
                             {"multicast", &costs.multicast},
                             {"multicast_falls", &costs.multicast_falls},
                             {"multicast_base_us", &costs.multicast_base_us},
                             {"multicast_us", &costs.multicast_us},
                             {"unsettled_us", &costs.unsettled_us},
                             {"settle_us", &costs.settle_us},
                             {"shortest_slice_bytes", &costs.shortest_slice_bytes}};
  list(all, "base_us", costs.base_us, protocol);
  for (std::size_t i = 0; i < kLinkClasses; ++i) list(all, "hop_us." + links(i), costs.hop_us[i], protocol);
  list(all, "step_us", costs.step_us, protocol);
  list(all, "message_us", costs.message_us, protocol);
  list(all, "received_us", costs.received_us, protocol);
  list(all, "channel_gbytes_per_s", costs.channel_gbytes_per_s, protocol);
  list(all, "encode_gbytes_per_s", costs.encode_gbytes_per_s, format);
  list(all, "decode_gbytes_per_s", costs.decode_gbytes_per_s, format);
  list(all, "sent_bytes_per_byte", costs.sent_bytes_per_byte, protocol);
  list(all, "efficiency", costs.efficiency, kind);
  list(all, "channel_bytes", costs.channel_bytes, protocol);
  list(all, "chunk_bytes", costs.chunk_bytes, protocol);
  list(all, "chain_chunk_bytes", costs.chain_chunk_bytes, protocol);
  return all;
}

std::vector<std::pair<std::string, std::uint32_t*>> counts_of(Costs& costs) {
  std::vector<std::pair<std::string, std::uint32_t*>> all = {{"max_channels", &costs.max_channels}};
  for (std::size_t i = 0; i < kProtocolCount; ++i) {
    const std::string protocol = name(static_cast<Protocol>(i));
    all.emplace_back("slices." + protocol, &costs.slices[i]);
    all.emplace_back("slots." + protocol, &costs.slots[i]);
  }
  return all;
}

// Returns true for parameters that must not be 0, since they divide or are divided.
bool must_be_positive(const std::string& figure) {
  for (const char* each : {"gbytes_per_s", "sent_bytes_per_byte", "efficiency", "mapped_share", "channel_bytes",
                           "chunk_bytes", "settle_us"})
    if (figure.find(each) != std::string::npos) return true;
  return false;
}

}  // namespace

const char* name(LaunchMode mode) { return kModes[static_cast<std::size_t>(mode)]; }

Result<LaunchMode> parse_launch_mode(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kModes); ++i) {
    if (text == kModes[i]) return static_cast<LaunchMode>(i);
  }
  return invalid_argument("unknown launch mode '" + std::string(text) +
                          "': must be eager (a process per GPU), eager-many (a process for several GPUs) or graph");
}

double launch_us(const Costs& costs, LaunchMode mode, const LaunchWork& work) {
  if (mode == LaunchMode::graph) return costs.launch_graph_us;
  if (mode == LaunchMode::eager) return costs.launch_us;
  return costs.launch_many_us + work.devices * (costs.launch_device_us + work.channels * costs.launch_channel_us);
}

Status set_figure(Costs& costs, std::string_view name, double value) {
  const std::string wanted(name);
  std::string known;
  for (const auto& [figure, count] : counts_of(costs)) {
    known += (known.empty() ? "" : ", ") + figure;
    if (figure != wanted) continue;
    if (value < 1 || value > 1024 || value != std::floor(value))
      return invalid_argument("figure " + wanted + " must be an integer from 1 to 1024");
    *count = static_cast<std::uint32_t>(value);
    return {};
  }
  for (const Figure& figure : figures_of(costs)) {
    known += ", " + figure.name;
    if (figure.name != wanted) continue;
    const double min = must_be_positive(wanted) ? kMinDivisor : 0;
    if (!(value >= min) || !std::isfinite(value))
      return invalid_argument("figure " + wanted + " is " + std::to_string(value) + ", but must be finite and " +
                              (min > 0 ? "above 0" : "at least 0"));
    *figure.value = value;
    return {};
  }
  return invalid_argument("unknown figure '" + wanted + "'; valid figures are " + known);
}

}  // namespace tutti::simulator
