#include "src/communicator/call/carriers.h"

#include <array>
#include <iterator>
#include <string_view>

#include "src/base/config.h"
#include "transports/net_plugin.h"
#include "transports/ucx.h"
#include "transports/verbs.h"

namespace tutti {
namespace {

struct CarrierKind {
  const char* name;
  Result<std::unique_ptr<CarrierSource>> (*open)(const CarrierUser& user);
  Result<std::string> (*describe)();
  Result<std::vector<RegionAccess>> (*describe_region_access)(const DeviceRegion& region);
};

Result<std::unique_ptr<CarrierSource>> open_ucx_for(const CarrierUser&) { return open_ucx(); }

VerbsOptions rdma_options(const CarrierUser& user) {
  VerbsOptions options = VerbsOptions::from(config());
  if (user.traffic_class != 0) options.set_class(user.traffic_class);
  return options;
}
Result<std::unique_ptr<CarrierSource>> open_rdma(const CarrierUser& user) { return open_verbs(rdma_options(user)); }
Result<std::string> describe_rdma() { return describe_verbs(VerbsOptions::from(config())); }
Result<std::vector<RegionAccess>> describe_region_access_by_rdma(const DeviceRegion& region) {
  return describe_region_access_by_verbs(VerbsOptions::from(config()), region);
}

NetPluginOptions net_plugin_options(const CarrierUser& user) {
  return {.plugins = config().net_plugin,
          .communicator = user.communicator,
          .first_device = user.index_on_host,
          .traffic_class = user.traffic_class};
}
Result<std::unique_ptr<CarrierSource>> open_plugin(const CarrierUser& user) {
  return open_net_plugin(net_plugin_options(user));
}
// Loads a plugin only if the user has named it or requested the transport.
Result<std::string> describe_plugin() {
  if (config().net_plugin.empty() && !config().transport.ends_with("net_plugin"))
    return unsupported(
        "not requested: set TUTTI_TRANSPORT to shm+net_plugin; TUTTI_NET_PLUGIN alone only names the plugin to "
        "describe");
  return describe_net_plugin(net_plugin_options({}));
}
Result<std::vector<RegionAccess>> describe_region_access_by_plugin(const DeviceRegion&) {
  return std::vector<RegionAccess>();
}

// Returns the options for RDMA that was not requested by name; fails if RDMA is disabled.
Result<VerbsOptions> automatic(const CarrierUser& user = {}) {
  if (config().ib_disabled) return unsupported("RDMA is disabled by TUTTI_IB_DISABLE or NCCL_IB_DISABLE");
  VerbsOptions options = rdma_options(user);
  options.use = VerbsUse::automatic;
  return options;
}

constexpr std::string_view kWithShm = "shm+";  // Shared memory within a host, and another transport between hosts.

// One line per transport.
constexpr std::array kKinds = {
    CarrierKind{"ucx", open_ucx_for, describe_ucx, describe_region_access_by_ucx},
    CarrierKind{"verbs", open_rdma, describe_rdma, describe_region_access_by_rdma},
    CarrierKind{"net_plugin", open_plugin, describe_plugin, describe_region_access_by_plugin},
};

}  // namespace

std::vector<std::string> transport_names() {
  std::vector<std::string> names = {"shm", "tcp", "shm+tcp"};
  for (const CarrierKind& kind : kKinds) {
    names.emplace_back(kind.name);
    names.emplace_back(std::string(kWithShm) + kind.name);
  }
  return names;
}

std::string network_of(const std::string& transport) {
  return transport.starts_with(kWithShm) ? transport.substr(kWithShm.size()) : transport;
}

Result<std::unique_ptr<CarrierSource>> open_carriers(const std::string& transport, const CarrierUser& user) {
  for (const CarrierKind& kind : kKinds) {
    if (network_of(transport) == kind.name) return kind.open(user);
  }
  return std::unique_ptr<CarrierSource>();
}

Status protection_unsupported(const std::string& transport) {
  return unsupported("transport " + transport +
                     " does not support TUTTI_ENCRYPT and TUTTI_CHECK; use tcp, or unset them");
}

Result<std::unique_ptr<CarrierSource>> open_default_carrier(const CarrierUser& user) {
  const VerbsOptions options = TUTTI_TRY(automatic(user));
  return open_verbs(options);
}

Result<std::string> describe_default_carrier() {
  const VerbsOptions options = TUTTI_TRY(automatic());
  return describe_verbs(options);
}

std::vector<std::pair<std::string, Result<std::string>>> describe_carriers() {
  std::vector<std::pair<std::string, Result<std::string>>> all;
  for (const CarrierKind& kind : kKinds) all.emplace_back(kind.name, kind.describe());
  return all;
}

std::vector<RegionAccess> describe_region_access_by_carriers(const DeviceRegion& region) {
  std::vector<RegionAccess> all;
  for (const CarrierKind& kind : kKinds) {
    Result<std::vector<RegionAccess>> ways = kind.describe_region_access(region);
    if (!ways.ok()) continue;  // Not available; describe() returns the reason.
    std::move(ways.value().begin(), ways.value().end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace tutti
