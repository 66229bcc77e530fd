// UCX between ranks: a carrier over UCP, which takes the best that UCX knows between two processes: RDMA, TCP, shared
// memory. The UCX_ variables of the environment say what it may take, as for every program that uses it.
//
// Memory of the host only: UCX could pass on memory of a GPU, but no lane between hosts lies there yet.
#pragma once

#include <memory>
#include <string>

#include "src/base/status.h"
#include "transports/carrier.h"

namespace tutti {

// Fails, and says why, where there is no libucp.so.0, or one that is too old.
Result<std::unique_ptr<CarrierSource>> open_ucx();

// For people: its version. Fails as open_ucx() does, and starts nothing.
Result<std::string> describe_ucx();

}  // namespace tutti
