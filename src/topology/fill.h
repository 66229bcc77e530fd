// What a file leaves out and everybody knows: the NVLinks of boards that are sold one way only, and the speed of
// network cards. What is filled in is noted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/topology/topology.h"

namespace tutti {

// The model's name where it is listed, "vendor:device" in hexadecimal where it is not, "" for 0:0.
std::string model_of(std::uint32_t vendor, std::uint32_t device);

void fill_in(Topology& topology);

// For files that do not say what their GPUs are. invalid_argument lists the models that there are.
Status set_gpu_model(Topology& topology, std::string_view model);

}  // namespace tutti
