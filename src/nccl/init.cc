// Creation of communicators. split_shrink.cc creates communicators from others.
#include <bit>
#include <utility>

#include "src/nccl/banner.h"
#include "src/nccl/export.h"
#include "src/nccl/groups.h"
#include "src/nccl/memory.h"

namespace tutti::nccl {
namespace {

Outcome check_rank_config(const RankConfig& rank_config) {
  if (rank_config.ranks < 1)
    return invalid_argument("nranks is " + std::to_string(rank_config.ranks) + ": pass 1 or more");
  if (rank_config.rank >= 0 && rank_config.rank < rank_config.ranks) return {};
  return invalid_argument("rank is " + std::to_string(rank_config.rank) + ": pass 0" +
                          (rank_config.ranks > 1 ? " to " + std::to_string(rank_config.ranks - 1) : ""));
}

struct Joining {
  RankConfig rank_config;
  ncclUniqueId id;
  Settings settings;
  int device;
};

// The arguments have been checked, and check_memory() has succeeded. Stores the handle before joining, so that another
// thread can abort the wait for the ranks.
Outcome join(ncclComm_t* out, Joining joining) {
  if (joining.rank_config.rank == 0) print_version_once();
  joining.settings.memory = memory_on(joining.device);
  const auto communicator =
      std::make_shared<Communicator>(joining.rank_config, std::move(joining.settings), joining.device);
  ncclComm_t handle = nullptr;
  TUTTI_NCCL_CHECK(admit_new(communicator, handle));
  put(out, handle);
  const auto undo = [out, handle] {
    put(out, nullptr);
    retire(handle);
  };
  return submit(Job{communicator, [communicator, id = joining.id] { return communicator->join(id); }, undo});
}

Outcome init(ncclComm_t* out, RankConfig rank_config, const ncclUniqueId* id, const ncclConfig_t* config) {
  if (out == nullptr) return invalid_argument("newcomm is NULL; pass a pointer to an ncclComm_t");
  put(out, nullptr);
  if (id == nullptr) return invalid_argument("the unique id is NULL; pass one from ncclGetUniqueId");
  Settings settings;
  TUTTI_NCCL_CHECK(read_config(config, settings));
  TUTTI_NCCL_CHECK(check_rank_config(rank_config));
  int device = 0;
  TUTTI_NCCL_CHECK(current_device(device));
  return join(out, {rank_config, *id, std::move(settings), device});
}

// Needs no GPU, because launchers call it on hosts without one, too.
Outcome make_id(ncclUniqueId* id) {
  if (id == nullptr) return invalid_argument("uniqueId is NULL; pass a pointer to an ncclUniqueId");
  tutti_unique_id made = {};
  TUTTI_NCCL_CHECK(outcome_of(tutti_get_unique_id(&made)));
  *id = std::bit_cast<ncclUniqueId>(made);
  return {};
}

// Several ranks may use the same device.
Outcome init_all(ncclComm_t* comms, int count, const int* devices) {
  if (comms == nullptr) return invalid_argument("comm is NULL: pass an array of ndev entries");
  TUTTI_NCCL_CHECK(check_rank_config({0, count}));
  if (static_cast<std::uint32_t>(count) > Handles::kEntries)
    return invalid_argument("ndev is " + std::to_string(count) + "; a process has at most " +
                            std::to_string(Handles::kEntries) + " communicators");
  TUTTI_NCCL_CHECK(check_memory());
  ncclUniqueId id;
  Settings settings;
  TUTTI_NCCL_CHECK(read_config(nullptr, settings));
  TUTTI_NCCL_CHECK(make_id(&id));
  for (int rank = 0; rank < count; ++rank) {
    const int device = devices == nullptr ? rank : devices[rank];
    TUTTI_NCCL_CHECK(join(&comms[rank], {{rank, count}, id, settings, device}));
  }
  return {};
}

}  // namespace

TUTTI_NCCL_API(ncclResult_t, GetUniqueId, ncclUniqueId* id) {
  return guarded("ncclGetUniqueId", [&] { return make_id(id); });
}

TUTTI_NCCL_API(ncclResult_t, CommInitRank, ncclComm_t* out, int ranks, ncclUniqueId id, int rank) {
  return grouped("ncclCommInitRank", [&] { return init(out, {rank, ranks}, &id, nullptr); });
}

TUTTI_NCCL_API(ncclResult_t, CommInitRankConfig, ncclComm_t* out, int ranks, ncclUniqueId id, int rank,
               ncclConfig_t* config) {
  return grouped("ncclCommInitRankConfig", [&] { return init(out, {rank, ranks}, &id, config); });
}

// NCCL spreads the rendezvous over several ids. Tutti's ranks join in a tree, for which the first id suffices.
TUTTI_NCCL_API(ncclResult_t, CommInitRankScalable, ncclComm_t* out, int ranks, int rank, int ids, ncclUniqueId* id,
               ncclConfig_t* config) {
  return grouped("ncclCommInitRankScalable", [&]() -> Outcome {
    if (ids < 1 || ids > ranks) {
      return invalid_argument("nId is " + std::to_string(ids) + ": pass 1 to nranks, " + std::to_string(ranks));
    }
    return init(out, {rank, ranks}, id, config);
  });
}

TUTTI_NCCL_API(ncclResult_t, CommInitAll, ncclComm_t* comms, int count, const int* devices) {
  return guarded("ncclCommInitAll", [&] { return in_own_group([&] { return init_all(comms, count, devices); }); });
}

}  // namespace tutti::nccl
