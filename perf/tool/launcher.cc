#include "perf/tool/launcher.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace perf {
namespace {

struct Variables {
  const char* launcher;
  const char* rank;
  const char* ranks;
};

// In the order in which the library looks for them.
constexpr Variables kKnown[] = {{"tutti", "TUTTI_RANK", "TUTTI_RANKS"},
                                {"torchrun", "RANK", "WORLD_SIZE"},
                                {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                {"MPICH", "PMI_RANK", "PMI_SIZE"},
                                {"Slurm", "SLURM_PROCID", "SLURM_NTASKS"}};

}  // namespace

std::string value_of(const char* name) {
  const std::size_t length = std::strlen(name);
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, name, length) == 0 && (*variable)[length] == '=') return *variable + length + 1;
  }
  return "";
}

int launched_ranks_here(int ranks) {
  // Slurm lists hosts, as in "4(x2),3"; the first number belongs to the first host.
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                           "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    const int here = std::atoi(value_of(name).c_str());
    if (here > 0) return here;
  }
  return ranks;
}

std::optional<Launcher> find_launcher() {
  for (const Variables& known : kKnown) {
    std::string ranks = value_of(known.ranks);
    if (ranks.empty() || value_of(known.rank).empty()) continue;
    return Launcher{std::string(known.launcher) + " (" + known.rank + ", " + known.ranks + ")", std::move(ranks)};
  }
  return std::nullopt;
}

}  // namespace perf
