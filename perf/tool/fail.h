// How a tool ends when something is wrong: one sentence on stderr, exit status 2. The parent of forked ranks notices
// and ends the others.
#pragma once

#include "tutti/tutti.h"

namespace perf {

// Before the first call of fail(): who speaks ("all_reduce_perf").
void set_program_name(const char* path);
const char* program_name();

// Before ranks are forked: what several of them, or of their parent, fail with in the same words is said once.
void share_failures();

[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Fails with the library's own sentence unless `status` is tutti_ok.
void require(tutti_status status, const char* action);

}  // namespace perf
