// Cost models of machines that no topology describes.
#pragma once

#include "src/tuner/cost.h"

namespace tutti::tool {

// Cost model of GPUs, or of host memory with the compression rates of this machine's processor.
Machine usual_machine(bool on_devices);

// Sets the bandwidth of each host's network link.
void set_link(Machine& machine, double gbits_per_s);

}  // namespace tutti::tool
