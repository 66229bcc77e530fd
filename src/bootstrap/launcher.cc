#include "src/bootstrap/launcher.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "src/base/log.h"
#include "src/base/read_number.h"
#include "src/bootstrap/slurm.h"

namespace tutti {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* ranks;
  const char* ranks_here;            // Ranks on this host, or null.
  std::array<const char*, 4> job{};  // Variables that identify the job on its host; null after the last.
};

constexpr const char* kOurs = "tutti";
constexpr const char* kMpich = "MPICH";
constexpr const char* kSlurm = "Slurm";

constexpr std::array<Launcher, 5> kLaunchers = {{
    {kOurs, "TUTTI_RANK", "TUTTI_RANKS", nullptr, {}},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_WORLD_SIZE",
     {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {kMpich, "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", {"PMI_JOBID"}},
    {kSlurm, "SLURM_PROCID", "SLURM_NTASKS", nullptr, {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
}};

Result<std::uint16_t> port_in(const std::string& text, const std::string& name) {
  std::uint16_t port = 0;
  if (read_number(text, port) && port != 0) return port;
  return invalid_usage(name + " is \"" + text + "\", but must be a whole number from 1 to 65535");
}

Result<Rank> rank_in(const Environment& environment, const char* name, Rank min, Rank max) {
  const std::optional<std::string> text = environment.get(name);
  if (!text) return invalid_usage(std::string(name) + " is not set");
  Rank number = 0;
  if (read_number(*text, number) && number >= min && number <= max) return number;
  return invalid_usage(std::string(name) + " is \"" + *text + "\", but must be a whole number from " +
                       std::to_string(min) + " to " + std::to_string(max));
}

// Returns the parent of a process, or 0 if it is unknown.
pid_t parent_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(')');  // The name may contain any character; state and parent follow it.
  return name_end == std::string::npos ? 0 : std::atoi(text.c_str() + std::min(name_end + 4, text.size()));
}

bool knows(pid_t process, const std::string& variable) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ");
  const std::string text = '\0' + std::string{std::istreambuf_iterator<char>(file), {}};
  return text.find('\0' + variable + "=") != std::string::npos;
}

// Finds the process that started all ranks. It may not be the direct parent, because scripts may wrap a rank and
// inherit its variables.
pid_t ancestor_without(const std::string& variable) {
  pid_t process = ::getppid();
  while (process > 1 && knows(process, variable)) process = parent_of(process);
  return process;
}

RendezvousPoint rendezvous_of_job(const Environment& environment, const Launcher& launcher) {
  std::string job = std::string(launcher.name) + "." + std::to_string(::geteuid());
  bool found = false;
  for (const char* name : launcher.job) {
    if (name == nullptr) break;
    const std::optional<std::string> value = environment.get(name);
    found = found || value;
    job += "." + value.value_or("");
  }
  if (!found) job += "." + std::to_string(ancestor_without(launcher.rank));
  return {.host = "", .job = std::move(job), .by_parent = !found};
}

bool on_one_host(const Environment& environment, const Launcher& launcher, const LaunchedRank& launched) {
  if (launcher.ranks_here != nullptr) {
    const std::optional<std::string> here = environment.get(launcher.ranks_here);
    return here ? *here == std::to_string(launched.ranks) : !environment.get("MASTER_ADDR").has_value();
  }
  const std::optional<std::string> hosts = environment.get("SLURM_NNODES");
  return launcher.name != std::string(kSlurm) || hosts.value_or("1") == "1";
}

// Parses "host:port" or "[v6 address]:port".
Result<RendezvousPoint> parse_root(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return invalid_usage("TUTTI_ROOT is \"" + text + "\", but must be host:port");
  RendezvousPoint point;
  point.variable = "TUTTI_ROOT";
  point.host = text.substr(0, colon);
  if (point.host.front() == '[' && point.host.back() == ']') point.host = point.host.substr(1, point.host.size() - 2);
  point.port = TUTTI_TRY(port_in(text.substr(colon + 1), "the port of TUTTI_ROOT"));
  return point;
}

Result<RendezvousPoint> rendezvous_of(const Environment& environment, const Launcher& launcher,
                                      LaunchedRank& launched) {
  if (const auto root = environment.get("TUTTI_ROOT")) {
    launched.launcher += ", TUTTI_ROOT";
    return parse_root(*root);
  }
  if (on_one_host(environment, launcher, launched)) return rendezvous_of_job(environment, launcher);
  const std::optional<std::string> host = environment.get("MASTER_ADDR");
  if (!host && launcher.name == std::string(kSlurm)) {
    const SlurmRoot root = TUTTI_TRY(slurm_root(environment));
    launched.launcher += ", " + root.variable;
    RendezvousPoint point;
    point.variable = root.variable;
    point.host = root.host;
    point.port = root.port;
    return point;
  }
  if (!host) {
    return invalid_usage(std::string("the ranks of ") + launcher.name +
                         " are on several hosts: set TUTTI_ROOT to host:port, where rank 0 is to listen");
  }
  launched.launcher += ", MASTER_ADDR";
  RendezvousPoint point;
  point.variable = "MASTER_ADDR";
  point.host = *host;
  const std::string port = environment.get("MASTER_PORT").value_or("29500");
  point.port = TUTTI_TRY(port_in(port, "MASTER_PORT"));
  if (++point.port == 0)
    // The launcher itself uses MASTER_PORT.
    return invalid_usage("MASTER_PORT is 65535, but the port after it is needed");
  return point;
}

// srun --mpi=pmi2 sets the variables of MPICH, too, but not the number of ranks on this host. Under mpiexec in a Slurm
// job, SLURM_PROCID is that of mpiexec's own process.
bool is_started_by_slurm(const Environment& environment, const Launcher& launcher) {
  const Launcher& slurm = kLaunchers.back();
  return launcher.name == std::string(kMpich) && !environment.get(launcher.ranks_here) &&
         environment.get(slurm.rank) == environment.get(launcher.rank) &&
         environment.get(slurm.ranks) == environment.get(launcher.ranks);
}

// Called if the variables of no launcher are complete. An incomplete set means that several ranks were intended, and
// each would run alone and succeed. Slurm is an exception: it sets SLURM_NTASKS for allocations and SLURM_PROCID in
// batch scripts, where programs run alone on purpose.
Status check_for_parts(const Environment& environment) {
  const auto check = [](const Launcher& launcher, const char* set, const char* missing) -> Status {
    const std::string text = std::string(set) + " is set, but " + missing + " is not";
    if (launcher.name != std::string(kSlurm)) {
      const std::string as = std::string(launcher.name) == kOurs ? "" : std::string(", as ") + launcher.name + " does,";
      return invalid_usage(text + ": set both" + as + " or unset " + set + " to run one rank");
    }
    log(LogLevel::warn, "%s: running as one rank; start several with srun", text.c_str());
    return {};
  };
  for (const Launcher& launcher : kLaunchers) {
    const bool has_rank = environment.get(launcher.rank).has_value();
    const bool has_ranks = environment.get(launcher.ranks).has_value();
    if (has_rank && !has_ranks) TUTTI_CHECK_OK(check(launcher, launcher.rank, launcher.ranks));
    if (has_ranks && !has_rank) TUTTI_CHECK_OK(check(launcher, launcher.ranks, launcher.rank));
  }
  if (!environment.get("TUTTI_ROOT")) return {};
  return invalid_usage(
      "TUTTI_ROOT is set, but nothing gives this process a rank: start it with mpirun, srun or torchrun, set "
      "TUTTI_RANK "
      "and TUTTI_RANKS, or unset TUTTI_ROOT to run one rank");
}

}  // namespace

Status check_root(const Environment& environment) {
  const auto root = environment.get("TUTTI_ROOT");
  return root ? parse_root(*root).status() : Status();
}

Result<LaunchedRank> find_launched_rank(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    const bool ours = &launcher == &kLaunchers.front();
    const bool has_rank = environment.get(launcher.rank).has_value();
    const bool has_ranks = environment.get(launcher.ranks).has_value();
    if (ours && has_rank != has_ranks) break;  // An error, even if another launcher's variables are complete.
    if (!has_rank || !has_ranks || is_started_by_slurm(environment, launcher)) continue;
    LaunchedRank launched;
    launched.ranks = TUTTI_TRY(rank_in(environment, launcher.ranks, 1, kMaxRanks));
    launched.rank = TUTTI_TRY(rank_in(environment, launcher.rank, 0, kMaxRanks - 1));
    if (launched.rank >= launched.ranks) {
      return invalid_usage(std::string(launcher.rank) + " is " + std::to_string(launched.rank) +
                           ", but must be from 0 to " + std::to_string(launched.ranks - 1) + ", since " +
                           launcher.ranks + " is " + std::to_string(launched.ranks));
    }
    launched.launcher = std::string(launcher.name) + " (" + launcher.rank + ", " + launcher.ranks;
    launched.point = TUTTI_TRY(rendezvous_of(environment, launcher, launched));
    launched.launcher += ")";
    return launched;
  }
  TUTTI_CHECK_OK(check_for_parts(environment));
  return LaunchedRank{};
}

}  // namespace tutti
