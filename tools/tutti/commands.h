// Commands of the tool, which print to standard output. argv[0] is the command's name; its options follow.
#pragma once

#include "src/base/status.h"
#include "tools/tutti/command.h"

namespace tutti::tool {

Status plan_command(int argc, char** argv);
Status verify_command(int argc, char** argv);
Status topo_command(int argc, char** argv);
Status explain_command(int argc, char** argv);
Status estimate_command(int argc, char** argv);
Status simulate_command(int argc, char** argv);
Status doctor_command(int argc, char** argv);
Status version_command(int argc, char** argv);

}  // namespace tutti::tool
