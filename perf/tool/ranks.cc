#include "perf/tool/ranks.h"

#include <thread>

#include "perf/tool/fail.h"
#include "perf/tool/process.h"

namespace perf {
namespace {

Ranks on_host(const Collective& collective, const Options& options, tutti_comm threads) {
  CommOptions forced(options);
  forced.force(options);
  // The handle inherits timeout and transport.
  forced.general.timeout_ms = 0;
  forced.tuning.transport = nullptr;
  tutti_comm view = nullptr;
  require(tutti_comm_with_options(threads, &forced.general, &view), "forcing the choice");
  Ranks ranks;
  ranks.push_back(std::make_unique<Rank>(collective, host_backend(options.memory), view));
  return ranks;
}

std::unique_ptr<Rank> on_gpu(const Collective& collective, const Options& options, const tutti_unique_id& id,
                             const Position& at) {
  std::unique_ptr<MemoryBackend> backend =
      gpu_backend(at.rank, options.windows ? GpuAllocator::tutti : GpuAllocator::cuda);
  const std::string memory = backend->memory();
  CommOptions made(options);
  made.force(options);
  made.general.memory = memory.c_str();
  tutti_comm comm = nullptr;
  require(tutti_comm_create(&id, at.rank, at.ranks, &made.general, &comm), "creating the communicator");
  return std::make_unique<Rank>(collective, std::move(backend), comm);
}

// Creates each rank in a thread, because joining waits for all ranks.
Ranks on_gpus(const Collective& collective, const Options& options, tutti_comm threads) {
  Position thread;
  require(tutti_comm_rank(threads, &thread.rank), "tutti_comm_rank");
  require(tutti_comm_ranks(threads, &thread.ranks), "tutti_comm_ranks");
  tutti_unique_id id = {};
  if (thread.rank == 0) require(tutti_get_unique_id(&id), "tutti_get_unique_id");
  require(tutti_broadcast(&id, &id, sizeof id, tutti_uint8, 0, threads, nullptr), "sending the id");
  const int own = static_cast<int>(options.per_thread);
  Ranks ranks(options.per_thread);
  std::vector<std::thread> joining;
  for (int i = 0; i < own; ++i) {
    joining.emplace_back([&, i] {
      const Position at = {.rank = thread.rank * own + i, .ranks = thread.ranks * own, .root = 0};
      ranks[static_cast<std::size_t>(i)] = on_gpu(collective, options, id, at);
    });
  }
  for (std::thread& one : joining) one.join();
  return ranks;
}

}  // namespace

Ranks make_ranks(const Collective& collective, const Options& options, tutti_comm threads) {
  return options.memory == Memory::cuda ? on_gpus(collective, options, threads) : on_host(collective, options, threads);
}

void allocate(Ranks& ranks, const Options& options, std::size_t bytes) {
  for (const auto& rank : ranks) rank->allocate(bytes);
  if (!options.windows) return;
  std::vector<std::thread> showing;
  for (const auto& rank : ranks) showing.emplace_back([&rank] { rank->register_windows(); });
  for (std::thread& one : showing) one.join();
}

std::vector<Call> group_of(const Ranks& ranks, const Case& one, std::uint32_t each) {
  std::vector<Call> calls;
  for (const auto& rank : ranks) calls.push_back(rank->call_of(one));
  for (std::uint32_t n = 1; n < each; ++n) {
    for (std::size_t i = 0; i < ranks.size(); ++i) calls.push_back(ranks[i]->on_part(one, calls[i], n));
  }
  return calls;
}

void end_ranks(Ranks& ranks, tutti_comm threads) {
  for (const auto& rank : ranks) rank->deregister_windows();
  int here = 1;  // Memory must not be freed before the ranks of other threads have released it.
  require(tutti_all_reduce(&here, &here, 1, tutti_int32, tutti_sum, threads, nullptr), "barrier");
  for (const auto& rank : ranks) rank->free();
  require(tutti_group_start(), "tutti_group_start");
  for (const auto& rank : ranks) {
    if (rank->backend().stream() != nullptr) require(tutti_comm_destroy(rank->comm()), "tutti_comm_destroy");
  }
  require(tutti_group_end(), "tutti_comm_destroy");
  ranks.clear();
  require(tutti_comm_destroy(threads), "tutti_comm_destroy");
}

}  // namespace perf
