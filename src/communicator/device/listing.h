// Descriptions of devices, for `tutti doctor`.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace tutti {

// Returns, for each device, its name and number, as in "NVIDIA H200 (device 0)", or why it cannot be used. Fails if
// there is no device.
Result<std::vector<std::string>> list_devices();

// Returns, for each device and network card, how the card accesses device memory: "NVIDIA H200 (device 0), mlx5_0: by
// dma-buf", or "...: through memory of the host: " and the reason. Empty without a device, or with TCP only.
std::vector<std::string> list_gpudirect();

}  // namespace tutti
