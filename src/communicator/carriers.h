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

// For people, by name: what of them this machine has, or why they cannot be used here.
std::vector<std::pair<std::string, Result<std::string>>> describe_carriers();

// Of the transport with this name; null for those that need none. Fails where the machine has not what it takes.
Result<std::unique_ptr<CarrierSource>> open_carriers(const std::string& transport);

}  // namespace tutti
