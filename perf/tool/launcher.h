// Reads a launcher's environment variables. The API of tutti.h returns this information only after joining, which waits
// for all ranks.
#pragma once

#include <optional>
#include <string>

namespace perf {

struct Launcher {
  std::string name;   // "Slurm (SLURM_PROCID, SLURM_NTASKS)"
  std::string ranks;  // The variable's text; the library validates it.
};

// Returns the launcher that the library would select; empty if there is none.
std::optional<Launcher> find_launcher();

// Number of ranks that the launcher started on this host. Returns `ranks`, the total, if the launcher does not set it.
int launched_ranks_here(int ranks);

// Value of an environment variable; empty if it is not set, which the library treats as equal.
std::string value_of(const char* variable);

}  // namespace perf
