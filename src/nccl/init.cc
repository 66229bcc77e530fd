// How communicators come to be.
#include <bit>

#include "src/nccl/door.h"
#include "src/nccl/groups.h"
#include "src/nccl/memory.h"

namespace tutti::nccl {
namespace {

void put(ncclComm_t* out, ncclComm_t handle) { __atomic_store_n(out, handle, __ATOMIC_RELEASE); }

Outcome check_seat(const Seat& seat) {
  if (seat.ranks < 1) return invalid_argument("nranks is " + std::to_string(seat.ranks) + ": pass 1 or more");
  if (seat.rank >= 0 && seat.rank < seat.ranks) return {};
  return invalid_argument("rank is " + std::to_string(seat.rank) + ": pass 0 to " + std::to_string(seat.ranks - 1));
}

Outcome admit_new(Shared communicator, ncclComm_t& handle) {
  handle = admit(std::move(communicator));
  if (handle != nullptr) return {};
  return invalid_usage("this process has as many communicators as there can be: destroy some");
}

struct Joining {
  Seat seat;
  ncclUniqueId id;
  Settings settings;
  int device;
};

// The handle is there at once, so that another thread can abort the wait for the ranks.
Outcome join(ncclComm_t* out, Joining joining) {
  TUTTI_NCCL_CHECK(check_memory());
  TUTTI_NCCL_CHECK(check_seat(joining.seat));
  const auto communicator = std::make_shared<Communicator>(joining.seat, std::move(joining.settings), joining.device);
  ncclComm_t handle = nullptr;
  TUTTI_NCCL_CHECK(admit_new(communicator, handle));
  put(out, handle);
  const auto undo = [out, handle] {
    put(out, nullptr);
    retire(handle);
  };
  Outcome submitted =
      submit(Job{communicator, [communicator, id = joining.id] { return communicator->join(id); }, undo});
  if (submitted.failed()) undo();
  return submitted;
}

Outcome init(ncclComm_t* out, Seat seat, const ncclUniqueId* id, const ncclConfig_t* config) {
  if (out == nullptr) return invalid_argument("newcomm is NULL: pass where to put the communicator");
  put(out, nullptr);
  if (id == nullptr) return invalid_argument("the unique id is NULL: pass one of ncclGetUniqueId");
  Settings settings;
  TUTTI_NCCL_CHECK(read_config(config, settings));
  return join(out, {seat, *id, std::move(settings), current_device()});
}

Outcome make_id(ncclUniqueId* id) {
  if (id == nullptr) return invalid_argument("uniqueId is NULL: pass where to put it");
  tutti_unique_id made = {};
  TUTTI_NCCL_CHECK(outcome_of(tutti_get_unique_id(&made)));
  *id = std::bit_cast<ncclUniqueId>(made);
  return {};
}

// Several ranks may have the same device: they share it.
Outcome init_all(ncclComm_t* comms, int count, const int* devices) {
  if (comms == nullptr) return invalid_argument("comm is NULL: pass an array of ndev entries");
  TUTTI_NCCL_CHECK(check_memory());
  TUTTI_NCCL_CHECK(check_seat({0, count}));
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

// Runs in the parent's job or thread; the part's handle appears when it is ready.
Outcome split(const Communicator& parent, int color, int key, const Settings& settings, ncclComm_t* out) {
  tutti_comm part = nullptr;
  const tutti_comm_options options = options_for(settings);
  TUTTI_NCCL_CHECK(outcome_of(tutti_comm_split(parent.comm(), color, key, &options, &part)));
  if (part == nullptr) return {};
  Seat seat = {};
  TUTTI_NCCL_CHECK(outcome_of(tutti_comm_rank(part, &seat.rank)));
  TUTTI_NCCL_CHECK(outcome_of(tutti_comm_ranks(part, &seat.ranks)));
  const auto communicator = std::make_shared<Communicator>(seat, settings, parent.device);
  TUTTI_NCCL_CHECK(communicator->adopt(part));
  ncclComm_t handle = nullptr;
  TUTTI_NCCL_CHECK(admit_new(communicator, handle));
  put(out, handle);
  return {};
}

Outcome begin_split(ncclComm_t comm, int color, int key, ncclComm_t* out, const ncclConfig_t* config) {
  if (out == nullptr) return invalid_argument("newcomm is NULL: pass where to put the communicator");
  put(out, nullptr);
  Shared parent;
  TUTTI_NCCL_CHECK(find_ready(comm, parent));
  if (color < kNoColor) {
    return invalid_argument("color is " + std::to_string(color) + ": pass 0 or more, or NCCL_SPLIT_NOCOLOR");
  }
  Settings settings = parent->settings;
  if (config != nullptr) {
    settings = {};
    TUTTI_NCCL_CHECK(read_config(config, settings));
  }
  return submit(Job{parent, [=] { return split(*parent, color, key, settings, out); }, nullptr});
}

}  // namespace

TUTTI_NCCL_DOOR(ncclResult_t, GetUniqueId, ncclUniqueId* id) {
  return guarded("ncclGetUniqueId", [&] { return make_id(id); });
}

TUTTI_NCCL_DOOR(ncclResult_t, CommInitRank, ncclComm_t* out, int ranks, ncclUniqueId id, int rank) {
  return grouped("ncclCommInitRank", [&] { return init(out, {rank, ranks}, &id, nullptr); });
}

TUTTI_NCCL_DOOR(ncclResult_t, CommInitRankConfig, ncclComm_t* out, int ranks, ncclUniqueId id, int rank,
                ncclConfig_t* config) {
  return grouped("ncclCommInitRankConfig", [&] { return init(out, {rank, ranks}, &id, config); });
}

// Several ids let NCCL's ranks meet at several places. Ours meet in a tree, for which the first one is enough.
TUTTI_NCCL_DOOR(ncclResult_t, CommInitRankScalable, ncclComm_t* out, int ranks, int rank, int ids, ncclUniqueId* id,
                ncclConfig_t* config) {
  return grouped("ncclCommInitRankScalable", [&]() -> Outcome {
    if (ids < 1 || ids > ranks) {
      return invalid_argument("nId is " + std::to_string(ids) + ": pass 1 to nranks, " + std::to_string(ranks));
    }
    return init(out, {rank, ranks}, id, config);
  });
}

TUTTI_NCCL_DOOR(ncclResult_t, CommInitAll, ncclComm_t* comms, int count, const int* devices) {
  return guarded("ncclCommInitAll", [&] { return in_own_group([&] { return init_all(comms, count, devices); }); });
}

TUTTI_NCCL_DOOR(ncclResult_t, CommSplit, ncclComm_t comm, int color, int key, ncclComm_t* out, ncclConfig_t* config) {
  return grouped("ncclCommSplit", [&] { return begin_split(comm, color, key, out, config); });
}

}  // namespace tutti::nccl
