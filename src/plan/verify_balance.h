// Checks that sends match receives: in the whole plan (required), in each stage and in each round. Only counts; does
// not run the plan.
#pragma once

#include "src/plan/verify_program.h"

namespace tutti {

// Sets program.drained and program.balanced. Fails if a message or signal has no other end.
Status check_balance(CellProgram& program);

}  // namespace tutti
