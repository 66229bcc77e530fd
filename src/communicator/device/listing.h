// Which devices a process may have communicators on, in words for people.
#pragma once

#include <string>
#include <vector>

#include "src/base/status.h"

namespace tutti {

// "NVIDIA H200 (device 0)", or why that device is of no use. Fails where there is none, and says why.
Result<std::vector<std::string>> list_devices();

// Of each device, and what leads from it to other hosts: "NVIDIA H200 (device 0), mlx5_0: by dma-buf", or "...: through
// memory of the host: " and why. Nothing where there is no device, or nothing but TCP.
std::vector<std::string> list_gpudirect();

}  // namespace tutti
