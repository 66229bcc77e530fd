// Carrier over reliable connections of RDMA devices: InfiniBand or RoCE.
//
// Supports GPU memory if RDMA devices can access it: by dma-buf, or through a peer-memory driver.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/status.h"
#include "transports/carrier.h"

namespace tutti {

// Whether the user selected verbs explicitly. If not, only devices that are certainly faster are used: software
// devices, which are slower than TCP, only if `hca` names them, and only if enough memory can be locked.
enum class VerbsUse : std::uint8_t { requested, automatic };

struct VerbsOptions {
  std::string hca;                 // List of ports, see verbs/hca_filter.h.
  std::int32_t gid_index = -1;     // -1: the best GID of the port.
  std::uint8_t traffic_class = 0;  // RoCE, and InfiniBand between subnets.
  std::uint8_t service_level = 0;  // InfiniBand; 0 to 15.
  // An unresponsive peer is detected after about 4.096 us * 2^timeout * (retry_count + 1); hardware may take up to four
  // times as long. The defaults give 3.8 s, so that an outage of 3 s is survived, as over TCP.
  std::uint8_t timeout = 17;
  std::uint8_t retry_count = 6;
  std::uint32_t queue_pairs = 2;  // Per pair of ranks and port, at most 4. The smaller number of two ranks is used.
  VerbsUse use = VerbsUse::requested;

  // Like NCCL, selects a class for either kind of network.
  void set_class(std::uint8_t number) {
    constexpr std::uint8_t kServiceLevels = 16;
    traffic_class = number;
    service_level = number < kServiceLevels ? number : 0;
  }

  static VerbsOptions from(const Config& config) {
    return {.hca = config.ib_hca,
            .gid_index = config.ib_gid_index,
            .traffic_class = static_cast<std::uint8_t>(config.ib_traffic_class),
            .timeout = static_cast<std::uint8_t>(config.ib_timeout),
            .retry_count = static_cast<std::uint8_t>(config.ib_retry_count),
            .queue_pairs = config.ib_queue_pairs};
  }
};

// Fails, with the reason, if there is no libibverbs.so.1, no device, or no active port that `options` permit.
Result<std::unique_ptr<CarrierSource>> open_verbs(const VerbsOptions& options);

// Descriptions for `tutti doctor`: the ports that open_verbs() would use, and how their devices access a region. They
// fail like open_verbs().
Result<std::string> describe_verbs(const VerbsOptions& options);
Result<std::vector<RegionAccess>> describe_region_access_by_verbs(const VerbsOptions& options,
                                                                  const DeviceRegion& region);

}  // namespace tutti
