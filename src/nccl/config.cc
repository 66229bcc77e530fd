#include "src/nccl/config.h"

#include <strings.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "src/nccl/banner.h"
#include "src/nccl/config_field.h"
#include "src/nccl/environment.h"

namespace tutti::nccl {
namespace {

constexpr const char* kInitializer = "NCCL_CONFIG_INITIALIZER";

// Integer field of the config, valid from version `since` on, with its default. Older programs have arbitrary bytes
// there.
struct Field : ConfigField<ncclConfig_t> {
  unsigned since;
  int fallback;
};

constexpr Field kFields[] = {
    {{"blocking", &ncclConfig_t::blocking, 0, 1}, 21400, 1},
    {{"cgaClusterSize", &ncclConfig_t::cgaClusterSize, 0, 8}, 21700, 4},
    {{"minCTAs", &ncclConfig_t::minCTAs, 1, kNoMaximum}, 21700, kUndefined},
    {{"maxCTAs", &ncclConfig_t::maxCTAs, 1, kNoMaximum}, 21700, kUndefined},
    {{"splitShare", &ncclConfig_t::splitShare, 0, 1}, 21700, 0},
    {{"trafficClass", &ncclConfig_t::trafficClass, -1, kNoMaximum}, 22500, kUndefined},
    {{"collnetEnable", &ncclConfig_t::collnetEnable, 0, 1}, 22700, 0},
    {{"CTAPolicy", &ncclConfig_t::CTAPolicy, 0, 3}, 22700, 0},  // Bits: efficiency, zero.
    {{"shrinkShare", &ncclConfig_t::shrinkShare, 0, 1}, 22700, 0},
    {{"nvlsCTAs", &ncclConfig_t::nvlsCTAs, 1, kNoMaximum}, 22700, kUndefined},
    {{"nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, 1, kNoMaximum}, 22800, kUndefined},
    {{"nvlinkCentricSched", &ncclConfig_t::nvlinkCentricSched, 0, 1}, 22800, 0},
    {{"graphUsageMode", &ncclConfig_t::graphUsageMode, 0, 2}, 22900, 2},
    {{"numRmaCtx", &ncclConfig_t::numRmaCtx, 1, kNoMaximum}, 22900, 1},
    {{"maxP2pPeers", &ncclConfig_t::maxP2pPeers, 1, kNoMaximum}, 23000, kUndefined},
    {{"graphStreamOrdering", &ncclConfig_t::graphStreamOrdering, INT_MIN, kNoMaximum}, 23005, kUndefined},
};
constexpr unsigned kNamesSince = 22700;  // commName
constexpr unsigned kNetsSince = 21700;   // netName

// Transports of tutti.h between hosts, by the names that NCCL and its plugins use.
struct Net {
  const char* name;
  const char* transport;
};
constexpr Net kRdma = {"IB", "shm+verbs"};
constexpr Net kNets[] = {{"Socket", "shm+tcp"}, kRdma, {"UCX", "shm+ucx"}};

const char* transport_of_net(const std::string& name) {
  for (const Net& net : kNets)
    if (::strcasecmp(name.c_str(), net.name) == 0) return net.transport;
  return nullptr;
}

// TUTTI_TRANSPORT overrides a variable that disables RDMA, but netName and NCCL_NET do not.
Outcome check_net(const char* source, const char* transport) {
  if (transport == nullptr || std::strcmp(transport, kRdma.transport) != 0 || !rdma_is_disabled()) return {};
  return invalid_usage(std::string(source) +
                       " is IB, but TUTTI_IB_DISABLE or NCCL_IB_DISABLE is 1: unset that, or select Socket or UCX");
}

// As in NCCL, the environment overrides the config. Names of plugins in the environment are ignored.
Outcome choose_net(const char* requested, Settings& settings) {
  const char* transport = requested == nullptr ? nullptr : transport_of_net(requested);
  if (requested != nullptr && transport == nullptr)
    return invalid_argument("config.netName is \"" + std::string(requested) +
                            "\": pass Socket, IB or UCX, or leave it NULL");
  const char* forced = transport_of_net(variable("NCCL_NET"));
  if (!variable("TUTTI_TRANSPORT").empty()) return {};
  settings.tuning.transport = forced == nullptr ? transport : forced;
  return check_net(forced == nullptr ? "config.netName" : "NCCL_NET", settings.tuning.transport);
}

// The environment overrides the config, and -1 means no class, as in NCCL.
void choose_traffic_class(int requested, Settings& settings) {
  constexpr int kMax = 255;
  if (requested > kMax) log_warning("config.trafficClass " + std::to_string(requested) + " is ignored: pass -1 to 255");
  const bool given = requested > 0 && requested <= kMax;
  if (given && !traffic_class_is_set()) settings.traffic_class = static_cast<std::uint32_t>(requested);
}

ncclConfig_t defaults() {
  ncclConfig_t config = {};
  config.version = kVersion;
  for (const Field& field : kFields) config.*field.member = kUndefined;
  return config;
}

Outcome check_field(const Field& field, ncclConfig_t& config) {
  int& value = config.*field.member;
  if (value != kUndefined && config.version >= field.since) return check_range(field, value, kInitializer);
  value = field.fallback;
  return {};
}

// The environment overrides the config, as in NCCL.
ChannelBound channel_bound(const char* variable, ChannelBound requested) {
  const std::optional<int> value = ctas_of_environment(variable);
  return value ? ChannelBound{*value, variable} : requested;
}

}  // namespace

Outcome read_config(const ncclConfig_t* config, Settings& settings) {
  ncclConfig_t known = defaults();
  if (config != nullptr) TUTTI_NCCL_CHECK(copy_known(*config, offsetof(ncclConfig_t, blocking), kInitializer, known));
  for (const Field& field : kFields) TUTTI_NCCL_CHECK(check_field(field, known));
  const ChannelBound min = channel_bound("NCCL_MIN_CTAS", {known.minCTAs, "config.minCTAs"});
  const ChannelBound max = channel_bound("NCCL_MAX_CTAS", {known.maxCTAs, "config.maxCTAs"});
  TUTTI_NCCL_CHECK(check_channels(min, max));
  if (min.value != kUndefined) settings.tuning.min_channels = static_cast<std::uint32_t>(min.value);
  const int policy = cta_policy_of_environment().value_or(known.CTAPolicy);
  if (max.value != kUndefined) settings.max_ctas = static_cast<std::uint32_t>(max.value);
  settings.tuning.max_channels = settings.max_ctas;
  if (max.value == kUndefined && policy == kFewCtas)
    settings.tuning.max_channels = static_cast<std::uint32_t>(std::max(min.value, kMaxFewCtas));
  const int blocking = blocking_of_environment().value_or(known.blocking);
  settings.mode = blocking == 1 ? Mode::blocking : Mode::non_blocking;
  if (known.commName != nullptr && known.version >= kNamesSince) settings.name = known.commName;
  if ((policy & kZeroCtas) != 0 && !algorithm_is_set()) settings.tuning.algorithm = kZeroCtaAlgorithm;
  choose_traffic_class(known.trafficClass, settings);
  TUTTI_NCCL_CHECK(choose_net(known.version >= kNetsSince ? known.netName : nullptr, settings));
  return read_compression_rule(settings.name, settings.compression);
}

}  // namespace tutti::nccl
