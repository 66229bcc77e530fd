// Which settings of a process keep its communicators from being made: for who wants to know before there are any.
#pragma once

#include <string>
#include <vector>

#include "src/base/config.h"

namespace tutti {

// A sentence for each. Opens the secret file and that of a topology, and looks at the interfaces; joins nobody, and
// looks up no host.
std::vector<std::string> refused_settings(const Environment& environment, const Config& config);

}  // namespace tutti
