// Carrier over a network plugin of NCCL (libnccl-net-*.so, versions 8 to 12), for host memory. Such plugins reach
// networks that neither TCP nor RDMA verbs serve well.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "transports/carrier.h"

namespace tutti {

struct NetPluginOptions {
  // Names or paths of plugins, separated by commas, as in NCCL_NET_PLUGIN: the first one that can be used is used.
  // Empty: libnccl-net.so. "none": no plugin.
  std::string plugins;
  std::uint64_t communicator = 0;  // Number of the communicator, the same on all ranks.
  std::uint32_t first_device = 0;  // Connections use the devices in turn, starting with this one.
  // Traffic class of the communicator, for plugins of version 11 and later; 0: the plugin's default.
  std::uint8_t traffic_class = 0;
};

// Fails, with the reasons, if no plugin can be loaded and initialized, or none has a device for host memory.
Result<std::unique_ptr<CarrierSource>> open_net_plugin(const NetPluginOptions& options);

// Description of plugin and devices for `tutti doctor`. Fails like open_net_plugin().
Result<std::string> describe_net_plugin(const NetPluginOptions& options);

}  // namespace tutti
