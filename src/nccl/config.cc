#include "src/nccl/config.h"

#include <strings.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "src/nccl/environment.h"

namespace tutti::nccl {
namespace {

// Integer field of the config, valid from version `since` on, with its default and range. Older programs have arbitrary
// bytes there.
struct Field {
  const char* name;
  int ncclConfig_t::*member;
  unsigned since;
  int fallback, least, most;
};

constexpr int kMany = INT_MAX;
constexpr Field kFields[] = {
    {"blocking", &ncclConfig_t::blocking, 21400, 1, 0, 1},
    {"cgaClusterSize", &ncclConfig_t::cgaClusterSize, 21700, 4, 0, 8},
    {"minCTAs", &ncclConfig_t::minCTAs, 21700, kUndefined, 1, kMany},
    {"maxCTAs", &ncclConfig_t::maxCTAs, 21700, kUndefined, 1, kMany},
    {"splitShare", &ncclConfig_t::splitShare, 21700, 0, 0, 1},
    {"trafficClass", &ncclConfig_t::trafficClass, 22500, kUndefined, INT_MIN, kMany},
    {"collnetEnable", &ncclConfig_t::collnetEnable, 22700, 0, 0, 1},
    {"CTAPolicy", &ncclConfig_t::CTAPolicy, 22700, 0, 0, 3},  // Bits: efficiency, zero.
    {"shrinkShare", &ncclConfig_t::shrinkShare, 22700, 0, 0, 1},
    {"nvlsCTAs", &ncclConfig_t::nvlsCTAs, 22700, kUndefined, 1, kMany},
    {"nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, 22800, kUndefined, 1, kMany},
    {"nvlinkCentricSched", &ncclConfig_t::nvlinkCentricSched, 22800, 0, 0, 1},
    {"graphUsageMode", &ncclConfig_t::graphUsageMode, 22900, 2, 0, 2},
    {"numRmaCtx", &ncclConfig_t::numRmaCtx, 22900, 1, 1, kMany},
    {"maxP2pPeers", &ncclConfig_t::maxP2pPeers, 23000, kUndefined, 1, kMany},
    {"graphStreamOrdering", &ncclConfig_t::graphStreamOrdering, 23005, kUndefined, INT_MIN, kMany},
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
  const char* forced = transport_of_net(net_of_environment());
  if (is_set("TUTTI_TRANSPORT")) return {};
  settings.tuning.transport = forced == nullptr ? transport : forced;
  return check_net(forced == nullptr ? "config.netName" : "NCCL_NET", settings.tuning.transport);
}

ncclConfig_t defaults() {
  ncclConfig_t config = {};
  config.version = kVersion;
  for (const Field& field : kFields) config.*field.member = kUndefined;
  return config;
}

Outcome check_field(const Field& field, ncclConfig_t& config) {
  int& value = config.*field.member;
  if (value == kUndefined || config.version < field.since) {
    value = field.fallback;
    return {};
  }
  if (value >= field.least && value <= field.most) return {};
  return invalid_argument(std::string("config.") + field.name + " is " + std::to_string(value) + ": pass " +
                          std::to_string(field.least) +
                          (field.most == kMany ? " or more" : " to " + std::to_string(field.most)) +
                          ", or leave it as NCCL_CONFIG_INITIALIZER sets it");
}

// Copies the fields that the program's struct has; the others become undefined.
Outcome copy_known(const ncclConfig_t& given, ncclConfig_t& known) {
  if (given.magic != kConfigMagic) {
    return invalid_argument("config.magic is wrong; initialize config with NCCL_CONFIG_INITIALIZER");
  }
  if (given.size < offsetof(ncclConfig_t, blocking)) {
    return invalid_argument("config.size is " + std::to_string(given.size) +
                            ", too small for a config; initialize config with NCCL_CONFIG_INITIALIZER");
  }
  std::memcpy(static_cast<void*>(&known), &given, std::min(given.size, sizeof known));
  return {};
}

}  // namespace

Outcome read_config(const ncclConfig_t* config, Settings& settings) {
  ncclConfig_t known = defaults();
  if (config != nullptr) TUTTI_NCCL_CHECK(copy_known(*config, known));
  for (const Field& field : kFields) TUTTI_NCCL_CHECK(check_field(field, known));
  known.minCTAs = ctas_of_environment("NCCL_MIN_CTAS").value_or(known.minCTAs);
  known.maxCTAs = ctas_of_environment("NCCL_MAX_CTAS").value_or(known.maxCTAs);
  if (known.maxCTAs != kUndefined && known.minCTAs > known.maxCTAs) {
    return invalid_argument("config.minCTAs is " + std::to_string(known.minCTAs) + ", more than config.maxCTAs, " +
                            std::to_string(known.maxCTAs));
  }
  if (known.minCTAs != kUndefined) settings.tuning.min_channels = static_cast<std::uint32_t>(known.minCTAs);
  if (known.maxCTAs != kUndefined) settings.tuning.max_channels = static_cast<std::uint32_t>(known.maxCTAs);
  const int blocking = blocking_of_environment().value_or(known.blocking);
  settings.mode = blocking == 1 ? Mode::blocking : Mode::non_blocking;
  if (known.commName != nullptr && known.version >= kNamesSince) settings.name = known.commName;
  TUTTI_NCCL_CHECK(choose_net(known.version >= kNetsSince ? known.netName : nullptr, settings));
  return read_compression_rule(settings.name, settings.compression);
}

}  // namespace tutti::nccl
