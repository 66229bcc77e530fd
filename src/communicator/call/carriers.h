// List of the transports, other than TCP, that carry messages between hosts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "transports/carrier.h"

namespace tutti {

// Returns "shm", "tcp", the other transports between hosts of this build, and "shm+tcp" and so on.
std::vector<std::string> transport_names();

// Returns the transport between hosts: for "shm+tcp" "tcp", and other names unchanged.
std::string network_of(const std::string& transport);

// The rank that uses a transport, for transports that need to know it.
struct CarrierUser {
  std::uint64_t communicator = 0;   // Number of the communicator, the same on all ranks.
  std::uint32_t index_on_host = 0;  // Position of the rank among those of its host.
  std::uint8_t traffic_class = 0;   // Class of its packets, if the transport has classes; 0: the default.
};

// Opens the transport between hosts of this name. Returns null for "shm" and "tcp". Fails if this machine lacks what it
// needs.
Result<std::unique_ptr<CarrierSource>> open_carriers(const std::string& transport, const CarrierUser& user = {});
// Returns the error for a transport that supports neither TUTTI_ENCRYPT nor TUTTI_CHECK.
Status protection_unsupported(const std::string& transport);

// Opens the transport that ranks of several hosts use by default if all ranks have it. Fails with the reason if this
// process does not have it, or if it is disabled.
Result<std::unique_ptr<CarrierSource>> open_default_carrier(const CarrierUser& user);
inline constexpr const char* kDefaultCarrier = "verbs";

// Human-readable descriptions of the transports that need hardware: what they found, or why they are not available.
std::vector<std::pair<std::string, Result<std::string>>> describe_carriers();
Result<std::string> describe_default_carrier();

// Describes how each available transport reaches this device memory.
std::vector<RegionAccess> describe_region_access_by_carriers(const DeviceRegion& region);

}  // namespace tutti
