#include "perf/tool/launch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "perf/tool/children.h"
#include "perf/tool/fail.h"
#include "perf/tool/host_part.h"
#include "perf/tool/launcher.h"
#include "perf/tool/pin.h"
#include "perf/tool/process.h"
#include "perf/tool/report.h"
#include "perf/tool/start_on_hosts.h"
#include "perf/tool/thread_run.h"

namespace perf {
namespace {

int threads_of(const Options& options) { return static_cast<int>(options.processes * options.threads); }

// Runs all ranks as threads of this process: no rendezvous is needed, and they share memory.
int run_alone(const Collective& collective, const Options& options) {
  std::vector<tutti_comm> comms(options.threads);
  const CommOptions made(options);
  require(tutti_comm_create_all(threads_of(options), &made.general, comms.data()), "creating the communicators");
  std::atomic<bool> right = true;
  run_threads(options.threads, 0, [&](int rank) {
    const Pinned pinned = options.pin ? pin(rank, threads_of(options)) : leave_unpinned();
    if (!run_thread(collective, options, comms[static_cast<std::size_t>(rank)], pinned)) right = false;
  });
  return right ? 0 : 1;
}

int fork_processes(const Collective& collective, const Options& options) {
  hold_child_signals();
  share_failures();
  int ends[2];
  if (::pipe(ends) != 0) fail("pipe: %s", std::strerror(errno));
  const pid_t parent = ::getpid();
  const int count = static_cast<int>(options.processes);
  Children children;
  for (int process = 0; process < count; ++process) {
    const pid_t child = ::fork();
    if (child < 0) fail("fork: %s", std::strerror(errno));
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(2);
      release_child_signals();
      if (process > 0) ::close(ends[1]);  // Otherwise the death of process 0 would not end the read.
      const tutti_unique_id id = process > 0 ? receive_id(ends[0]) : make_id();
      for (int other = 1; process == 0 && other < count; ++other) send_id(ends[1], id);
      if (process == 0) ::close(ends[1]);
      std::exit(run_process(collective, options, {process, process, count, count}, id));
    }
    children.all.push_back({"process " + std::to_string(process), child});
  }
  ::close(ends[0]);
  ::close(ends[1]);
  return watch(children);
}

// Returns this process's rank if a launcher started it, else null.
tutti_comm launched_rank(const Options& options) {
  tutti_comm comm = nullptr;
  const char* launcher = "";
  const CommOptions made(options);
  require(tutti_comm_create_from_environment(&made.general, &comm), "creating the communicator from the environment");
  require(tutti_comm_launcher(comm, &launcher), "tutti_comm_launcher");
  if (*launcher == '\0') {
    require(tutti_comm_destroy(comm), "tutti_comm_destroy");
    return nullptr;
  }
  return comm;
}

void warn_of_others(const Launcher& launcher, const Options& options) {
  if (launcher.ranks == std::to_string(threads_of(options))) return;
  std::fprintf(
      stderr,
      "%s: --ranks %u starts own processes instead of joining the %s processes of %s; omit --ranks to join them\n",
      program_name(), options.processes, launcher.ranks.c_str(), launcher.name.c_str());
}

bool starts_on_hosts(const Options& options) { return !options.hosts.empty() && options.part.processes == 0; }

// Returns true if the list `names` contains `name`.
bool has_algorithm(const char* names, const std::string& name) {
  const std::string separator = ", ";
  return !name.empty() && (separator + names + separator).find(separator + name + separator) != std::string::npos;
}

// The library ignores an algorithm that the collective lacks; this tool fails instead. TUTTI_ALGORITHM applies to the
// measured collective only, not to the tool's own barriers and reports. Other hosts inherit the setting through their
// environment.
void settle_algorithm(const Collective& collective, Options& options) {
  if (collective.call == nullptr) {
    if (!options.algorithm.empty())
      fail("--algorithm %s: %s has no algorithms", options.algorithm.c_str(), collective.name);
    return;
  }
  const char* names = "";
  require(tutti_algorithms(collective.call, &names), "tutti_algorithms");
  if (!options.algorithm.empty()) {
    if (!has_algorithm(names, options.algorithm))
      fail("--algorithm %s is invalid for %s; valid: %s", options.algorithm.c_str(), collective.name, names);
    return;
  }
  const std::string named = value_of("TUTTI_ALGORITHM");
  if (!has_algorithm(names, named)) return;
  options.algorithm = named;
  if (!starts_on_hosts(options)) ::unsetenv("TUTTI_ALGORITHM");
}

// Checks the format once, before there are ranks that would each report the error. The library checks formats only when
// a rank is created.
void check_compression(const Options& options) {
  if (options.compression.empty()) return;
  tutti_comm_options forced = TUTTI_COMM_OPTIONS_DEFAULT;
  forced.compression = options.compression.c_str();
  tutti_comm alone = nullptr;
  if (tutti_comm_create_all(1, &forced, &alone) == tutti_ok) {
    require(tutti_comm_destroy(alone), "tutti_comm_destroy");
    return;
  }
  fail("--compress %s: %s", options.compression.c_str(), tutti_last_error(nullptr));
}

// Checks the memory of ranks on this machine, so that the tool fails with a message instead of an out-of-memory kill.
void check_memory(const Options& options) {
  if (options.memory == Memory::cuda) return;
  const double buffers = 2.0 * threads_of(options);
  const double wanted = buffers * static_cast<double>(options.max_bytes);
  const double there = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (wanted <= there) return;
  fail("--maxbytes: %d ranks with 2 buffers each need %.1f GiB, but this machine has %.1f GiB; pass a smaller one",
       threads_of(options), wanted / (1 << 30), there / (1 << 30));
}

int launch_here(const Collective& collective, const Options& options) {
  check_memory(options);
  check_output(options);
  return options.processes == 1 ? run_alone(collective, options) : fork_processes(collective, options);
}

}  // namespace

// Checks arguments before the launcher's ranks join, since joining may block if ranks are missing.
int launch(const Collective& collective, Options options) {
  settle_algorithm(collective, options);
  check_compression(options);
  if (options.part.processes > 0) return run_part(collective, options);
  if (starts_on_hosts(options)) return start_on_hosts(options);
  const std::optional<Launcher> launcher = find_launcher();
  if (options.processes > 0) {
    if (launcher) warn_of_others(*launcher, options);
  } else if (options.threads * options.per_thread > 1) {
    if (launcher) {
      fail(
          "-t and -g are not supported under %s, whose processes are the ranks; start more of them, or pass --ranks to "
          "start processes",
          launcher->name.c_str());
    }
    options.processes = 1;
  } else if (tutti_comm launched = launched_rank(options)) {
    int rank = 0;
    require(tutti_comm_rank(launched, &rank), "tutti_comm_rank");
    int ranks = 0;
    require(tutti_comm_ranks(launched, &ranks), "tutti_comm_ranks");
    const Pinned pinned = options.pin ? pin(rank, launched_ranks_here(ranks)) : leave_unpinned();
    return run_thread(collective, options, launched, pinned) ? 0 : 1;
  } else if (options.memory == Memory::cuda) {  // Processes time-slice a GPU, or share it through MPS.
    options.processes = 1;
    options.threads = 2;
  } else {
    options.processes = 2;
  }
  return launch_here(collective, options);
}

}  // namespace perf
