// Part of a run on one host, started through ssh by start_on_hosts().
#pragma once

#include <string>

#include "perf/tool/collective.h"
#include "perf/tool/options.h"
#include "tutti/tutti.h"

namespace perf {

// Added to the exit statuses 0 and 1, so that they differ from those of a shell or of a program in place of ssh.
inline constexpr int kPartEnded = 100;

// Runs options.part. Process 0 says the id by which all join on stdout, in a line of its own; all others hear it, in
// the same words, from stdin. When that ends, so does the program with its processes: who started it has gone.
int run_part(const Collective& collective, const Options& options);

// That line, with its end.
std::string line_of(const tutti_unique_id& id);
// False: it is some other line; `line` is without its end.
bool read_line(const std::string& line, tutti_unique_id& id);

}  // namespace perf
