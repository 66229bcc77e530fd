// Which devices a process may have communicators on, in words for people.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace tutti {

// "NVIDIA H200 (device 0)", or why that device is of no use. Fails where there is none, and says why.
Result<std::vector<std::string>> list_devices();

// Describes, for each device, its access by network cards: "NVIDIA H200 (device 0), mlx5_0: by dma-buf", or "...:
// through memory of the host: " and the reason. Empty without a device, or with TCP only.
std::vector<std::string> list_gpudirect();

}  // namespace tutti
