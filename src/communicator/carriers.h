// Transports that carry messages between hosts beside TCP.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "transports/carrier.h"

namespace tutti {

// "shm", "tcp", and those by which ranks of several hosts may be reached, of this build.
std::vector<std::string> transport_names();

// Opens the transport with this name; null for transports without a carrier. Fails if the machine lacks what it
// needs.
Result<std::unique_ptr<CarrierSource>> open_carriers(const std::string& transport);
// Why it cannot have what was asked for by TUTTI_ENCRYPT or TUTTI_CHECK.
Status sends_as_they_are(const std::string& transport);

// Opens the carrier that ranks of several hosts use by default if all have it, and returns its name. Fails, with
// the reason, if this process has none or must not use it.
Result<std::unique_ptr<CarrierSource>> open_unasked();
inline constexpr const char* kUnasked = "verbs";

// For people: those that need something of the machine, and what it has of that, or why there is none.
std::vector<std::pair<std::string, Result<std::string>>> describe_carriers();
Result<std::string> describe_unasked();

// For people: how memory of a device is reached by each of these that is there.
std::vector<BlockWay> reach_by_carriers(const DeviceBlock& block);

}  // namespace tutti
