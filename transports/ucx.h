// Carrier over UCX's UCP, which selects the fastest transport between two processes: RDMA, TCP or shared memory. The
// UCX_ environment variables restrict the selection, as in other programs.
//
// Supports GPU memory if UCX does and the user requires it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "transports/carrier.h"

namespace tutti {

// Fails, with the reason, if libucp.so.0 is missing or too old.
Result<std::unique_ptr<CarrierSource>> open_ucx();

// Descriptions for `tutti doctor`: the version of UCX, and whether it can access a region. They fail like open_ucx().
// describe_ucx() does not start UCX.
Result<std::string> describe_ucx();
Result<std::vector<RegionAccess>> describe_region_access_by_ucx(const DeviceRegion& region);

}  // namespace tutti
