// Chooses the transport between hosts if none is requested: RDMA if all ranks have it, otherwise TCP. All ranks see the
// same offers and therefore make the same choice.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/config.h"
#include "src/base/status.h"
#include "src/bootstrap/bootstrap.h"
#include "transports/carrier.h"

namespace tutti {

// Offer and choice of one rank.
class NetworkChoice {
 public:
  // `traffic_class`: see CarrierUser.
  explicit NetworkChoice(std::uint8_t traffic_class) : traffic_class_(traffic_class) {}
  // Opens the transports of this process and returns its offer.
  RemoteOffer offer();
  // Returns the chosen carrier source; null for TCP. Logs the choice and the reason.
  std::unique_ptr<CarrierSource> choose(const Bootstrap& bootstrap);
  // Advice for errors of the chosen transport.
  static constexpr const char* kRdmaErrorAdvice =
      "RDMA was chosen since all ranks have it: TUTTI_IB_DISABLE=1 chooses TCP between hosts";

 private:
  const std::uint8_t traffic_class_;
  std::unique_ptr<CarrierSource> opened_;
};

// Returns why TCP is chosen, naming the rank that lacks RDMA; empty if all ranks have the same transport. `named`
// returns the description of a rank: "rank 3 (host-b pid 42)".
std::string why_tcp(const std::vector<RemoteOffer>& offers, const std::function<std::string(Rank)>& named);

// Fails if this process cannot use the transport that TUTTI_TRANSPORT names, or if that transport does not support
// TUTTI_ENCRYPT or TUTTI_CHECK. Opens and closes its devices, as selected by this process's settings rather than by
// `config`.
Status check_requested_transport(const Config& config);

// Returns a human-readable description of what ranks on this machine would offer.
std::string describe_between_hosts();

}  // namespace tutti
