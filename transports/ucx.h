// UCX between ranks: a carrier over UCP, which takes the best that UCX knows between two processes: RDMA, TCP, shared
// memory. The UCX_ variables of the environment say what it may take, as for every program that uses it.
//
// Memory of GPUs as well, where UCX knows it and it was asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/carrier.h"

namespace tutti {

// Fails, and says why, where there is no libucp.so.0, or one that is too old.
Result<std::unique_ptr<CarrierSource>> open_ucx();

// For people: its version; and whether it reaches a block. Both fail as open_ucx() does, and the first starts nothing.
Result<std::string> describe_ucx();
Result<std::vector<BlockWay>> reach_by_ucx(const DeviceBlock& block);

}  // namespace tutti
