// RDMA interface of a library that was built without verbs.
#include "transports/verbs.h"

namespace tutti {
namespace {

Status not_built() {
  return unsupported(
      "this library was built without RDMA verbs: build it where infiniband/verbs.h is (libibverbs-dev, rdma-core), "
      "and check that CMake prints 'VERBS on'");
}

}  // namespace

Result<std::unique_ptr<CarrierSource>> open_verbs(const VerbsOptions&) { return not_built(); }

Result<std::string> describe_verbs(const VerbsOptions&) { return not_built(); }

Result<std::vector<RegionAccess>> describe_region_access_by_verbs(const VerbsOptions&, const DeviceRegion&) {
  return not_built();
}

}  // namespace tutti
