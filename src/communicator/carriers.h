// What there is to carry messages between hosts beside TCP: the list of such transports.
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

// Of the transport with this name; null for those that need none. Fails where the machine has not what it takes.
Result<std::unique_ptr<CarrierSource>> open_carriers(const std::string& transport);
// Why it cannot have what was asked for by TUTTI_ENCRYPT or TUTTI_CHECK.
Status sends_as_they_are(const std::string& transport);

// What ranks of several hosts take unasked where all have it, and its name. Fails, and says why, where this process has
// none or is told to do without.
Result<std::unique_ptr<CarrierSource>> open_unasked();
inline constexpr const char* kUnasked = "verbs";

// For people: those that need something of the machine, and what it has of that, or why there is none.
std::vector<std::pair<std::string, Result<std::string>>> describe_carriers();
Result<std::string> describe_unasked();

// For people: how memory of a device is reached by each of these that is there.
std::vector<BlockWay> reach_by_carriers(const DeviceBlock& block);

}  // namespace tutti
