// The commands of the tool. Each prints to standard output; a failure is what the process ends with.
#pragma once

#include "src/base/status.h"
#include "tools/tutti/request.h"

namespace tutti::tool {

Status plan_command(const Request& request);
Status verify_command(const Request& request);
Status topo_command(int argc, char** argv);      // Reads its own options.
Status explain_command(int argc, char** argv);   // Likewise.
Status simulate_command(int argc, char** argv);  // Likewise.
Status doctor_command();
Status version_command();

}  // namespace tutti::tool
