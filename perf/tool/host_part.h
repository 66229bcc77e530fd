// The part of a run on one host, which start_on_hosts() starts through ssh.
#pragma once

#include <string>

#include "perf/tool/collective.h"
#include "perf/tool/options.h"
#include "tutti/tutti.h"

namespace perf {

// Added to exit statuses 0 and 1, so that they differ from exit statuses of ssh and the remote shell.
inline constexpr int kPartEnded = 100;

// Runs options.part. Process 0 prints the id for joining as one line on stdout; all other parts read that line from
// stdin. End of file on stdin means that the starting program ended: then this program ends with its processes.
int run_part(const Collective& collective, const Options& options);

// Formats that line, with its newline.
std::string line_of(const tutti_unique_id& id);
// Parses `line`, which has no newline. Returns false if it holds no id.
bool read_line(const std::string& line, tutti_unique_id& id);

}  // namespace perf
