// UCX interface of a library that was built without UCX.
#include "transports/ucx.h"

namespace tutti {
namespace {

Status not_built() {
  return unsupported(
      "this library was built without UCX: build it where ucp/api/ucp.h is (libucx-dev), check that CMake "
      "prints 'UCX on', or use tcp");
}

}  // namespace

Result<std::unique_ptr<CarrierSource>> open_ucx() { return not_built(); }

Result<std::string> describe_ucx() { return not_built(); }

Result<std::vector<RegionAccess>> describe_region_access_by_ucx(const DeviceRegion&) { return not_built(); }

}  // namespace tutti
