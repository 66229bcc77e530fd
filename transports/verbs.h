// RDMA between ranks: a carrier over the reliable connections of RDMA devices, InfiniBand or RoCE.
//
// Memory of GPUs as well, where the system lets RDMA devices reach it: by dma-buf, or by a driver that knows both.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/status.h"
#include "transports/carrier.h"

namespace tutti {

// Whether somebody has asked for it by name. If not, only what is sure to be worth it is taken: no devices made of
// software, which are slower than TCP, unless `hca` names them; and memory must be free to be registered.
enum class VerbsUse : std::uint8_t { asked, unasked };

struct VerbsOptions {
  std::string hca;              // Which ports: verbs/hca_filter.h.
  std::int32_t gid_index = -1;  // -1: the port's best.
  std::uint8_t traffic_class = 0;
  // An end that does not answer is reported after about 4.096 us * 2^timeout * (retry_count + 1), by hardware up to
  // four times later. By the defaults that is 3.8 s, so that a cut of 3 s does no harm, as over TCP.
  std::uint8_t timeout = 17;
  std::uint8_t retry_count = 6;
  VerbsUse use = VerbsUse::asked;

  static VerbsOptions from(const Config& config) {
    return {.hca = config.ib_hca,
            .gid_index = config.ib_gid_index,
            .traffic_class = static_cast<std::uint8_t>(config.ib_traffic_class),
            .timeout = static_cast<std::uint8_t>(config.ib_timeout),
            .retry_count = static_cast<std::uint8_t>(config.ib_retry_count)};
  }
};

// Fails, and says why, where there is no libibverbs.so.1, no device, or no port of one that is up and admitted.
Result<std::unique_ptr<CarrierSource>> open_verbs(const VerbsOptions& options);

// For people: the ports that open_verbs() would take, and how each of their devices reaches a block. Fail as that does.
Result<std::string> describe_verbs(const VerbsOptions& options);
Result<std::vector<BlockWay>> reach_by_verbs(const VerbsOptions& options, const DeviceBlock& block);

}  // namespace tutti
