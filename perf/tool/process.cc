#include "perf/tool/process.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "perf/tool/fail.h"
#include "perf/tool/pin.h"
#include "perf/tool/thread_run.h"

namespace perf {

// The timeout covers the whole run, because a rank in a barrier waits for ranks that are stuck in measured calls.
CommOptions::CommOptions(const Options& options) {
  general.timeout_ms = options.timeout_ms;
  general.tuning = &tuning;
  tuning.transport = options.transport.c_str();
}

void CommOptions::force(const Options& options) {
  general.compression = options.compression.c_str();
  general.max_relative_error = options.max_relative_error;
  general.compression_rounding = options.compression_rounding.c_str();
  tuning.algorithm = options.algorithm.c_str();
  tuning.protocol = options.protocol.c_str();
  tuning.channels = options.channels;
}

void run_threads(std::uint32_t count, int first, const std::function<void(int rank)>& run) {
  std::vector<std::thread> threads;
  for (int i = 1; i < static_cast<int>(count); ++i) threads.emplace_back([&run, rank = first + i] { run(rank); });
  run(first);
  for (std::thread& thread : threads) thread.join();
}

tutti_unique_id make_id() {
  tutti_unique_id id = {};
  require(tutti_get_unique_id(&id), "tutti_get_unique_id");
  return id;
}

tutti_unique_id receive_id(int descriptor) {
  tutti_unique_id id = {};
  if (::read(descriptor, &id, sizeof id) != sizeof id) fail("process 0 ended before it sent the id");
  ::close(descriptor);
  return id;
}

void send_id(int descriptor, const tutti_unique_id& id) {
  if (::write(descriptor, &id, sizeof id) != sizeof id) fail("sending the id: %s", std::strerror(errno));
}

int run_process(const Collective& collective, const Options& options, const Process& process,
                const tutti_unique_id& id) {
  const int threads = static_cast<int>(options.threads);
  std::atomic<bool> right = true;
  run_threads(options.threads, process.number * threads, [&](int rank) {
    const int core_index = process.here * threads + rank % threads;
    // Pins first, since a communicator reads the CPU affinity of its ranks.
    const Pinned pinned = options.pin ? pin(core_index, process.count_here * threads) : leave_unpinned();
    tutti_comm comm = nullptr;
    const CommOptions made(options);
    require(tutti_comm_create(&id, rank, process.count * threads, &made.general, &comm), "creating the communicator");
    if (!run_thread(collective, options, comm, pinned)) right = false;
  });
  return right ? 0 : 1;
}

}  // namespace perf
