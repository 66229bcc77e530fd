// Meeting point of ranks that srun has started on several hosts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/config.h"
#include "src/base/status.h"

namespace tutti {

// Returns the first host of a compressed list: "node01" of "node[01-04,07],gpu-a". nullopt if the list is malformed.
std::optional<std::string> first_host(std::string_view list);

struct SlurmRoot {
  std::string host;
  std::uint16_t port = 0;
  std::string variable;  // Variable with the list of hosts.
};

// Host: the first of SLURM_STEP_NODELIST, SLURM_JOB_NODELIST or SLURM_NODELIST, on which srun starts rank 0. Port: a
// function of SLURM_JOB_ID and SLURM_STEP_ID, from 10000 to 29999, below the ports that Linux assigns by itself. Fails
// if a variable is missing or malformed.
Result<SlurmRoot> slurm_root(const Environment& environment);

}  // namespace tutti
