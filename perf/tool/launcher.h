// Launcher variables of this process. tutti.h reports them only to a rank that has joined, and joining waits for
// all ranks.
#pragma once

#include <optional>
#include <string>

namespace perf {

struct Launcher {
  std::string name;   // "Slurm (SLURM_PROCID, SLURM_NTASKS)"
  std::string ranks;  // As its variable has it: the library judges whether it is a number.
};

// None where no variables of a launcher are set. Takes the one that the library would take.
std::optional<Launcher> find_launcher();

// Number of ranks that the launcher has started on this host; `ranks`, the number of all, if it does not say.
int launched_ranks_here(int ranks);

// Value in the environment. Empty: not set, like in the library.
std::string value_of(const char* variable);

}  // namespace perf
