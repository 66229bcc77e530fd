// Whether what is sent is received: in the plan (or it is wrong), in each stage, in each round. Counts, no run.
#pragma once

#include "src/plan/verify_program.h"

namespace tutti {

// Sets program.drained and program.balanced; fails where a message or a signal has no other end.
Status check_balance(CellProgram& program);

}  // namespace tutti
