// The RDMA of a library that was built without.
#include "transports/verbs.h"

namespace tutti {

Result<std::unique_ptr<CarrierSource>> open_verbs(const VerbsOptions&) {
  return unsupported(
      "this library was built without RDMA verbs: build it where infiniband/verbs.h is (libibverbs-dev, rdma-core), "
      "and "
      "see that the configuration says 'VERBS on', or use tcp");
}

}  // namespace tutti
