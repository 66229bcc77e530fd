// Fills in facts that a topology file omits but that follow from the hardware model: NVLinks of standard boards, and
// port speeds of NICs. Each assumption is recorded as a note.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/topology/topology.h"

namespace tutti {

// Returns the model's name if known, "vendor:device" in hexadecimal if unknown, and "" for 0:0.
std::string model_of(std::uint32_t vendor, std::uint32_t device);

void fill_in(Topology& topology);

// Sets the model of all GPUs, for files that omit it. Returns invalid_argument with the list of known models for an
// unknown `model`.
Status set_gpu_model(Topology& topology, std::string_view model);

}  // namespace tutti
