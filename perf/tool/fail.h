// Error exits of a tool: one message on stderr, exit status 2. The parent of forked ranks notices the exit and ends the
// other ranks.
#pragma once

#include "tutti/tutti.h"

namespace perf {

// Sets the prefix of messages ("all_reduce_perf"). Call before the first fail().
void set_program_name(const char* path);
const char* program_name();

// Call before ranks are forked: identical messages of several processes are then printed once.
void share_failures();

[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Fails with the library's error message unless `status` is tutti_ok.
void require(tutti_status status, const char* action);

}  // namespace perf
