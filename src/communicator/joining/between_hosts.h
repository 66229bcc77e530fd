// Choice of the transport between hosts if none is requested: RDMA if all ranks have it, else TCP. All ranks see
// the same offers, and so choose alike.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/status.h"
#include "src/bootstrap/bootstrap.h"
#include "transports/carrier.h"

namespace tutti {

// One rank's part in it.
class BetweenHosts {
 public:
  // Opens the transports of this process and returns its offer.
  RemoteOffer offer();
  // Returns the chosen carrier source; null for TCP. Logs the choice and the reason.
  std::unique_ptr<CarrierSource> choose(const Bootstrap& bootstrap);
  // For messages of what was chosen and does not work.
  static constexpr const char* kInstead =
      "RDMA was chosen since all ranks have it: TUTTI_IB_DISABLE=1 chooses TCP between hosts";

 private:
  std::unique_ptr<CarrierSource> opened_;
};

// Empty: all ranks have the same. If not, whose fault it is; `named`: "rank 3 (host-b pid 42)".
std::string why_tcp(const std::vector<RemoteOffer>& offers, const std::function<std::string(Rank)>& named);

// Whether this process can have the transport that TUTTI_TRANSPORT names, if it names one, and what TUTTI_ENCRYPT and
// TUTTI_CHECK ask for over it. Opens its devices, and closes them again: those that this process's settings name,
// whatever `config` says of them.
Status check_asked_transport(const Config& config);

// For people: what ranks on this machine would offer.
std::string describe_between_hosts();

}  // namespace tutti
