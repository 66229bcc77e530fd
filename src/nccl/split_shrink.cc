// Communicators made from others by ncclCommSplit and ncclCommShrink.
#include <utility>
#include <vector>

#include "src/nccl/banner.h"
#include "src/nccl/export.h"
#include "src/nccl/groups.h"
#include "src/nccl/memory.h"

namespace tutti::nccl {
namespace {

// Publishes the handle of a new communicator. After an abort of the parent, `out` may be invalid, so nothing is stored.
Outcome present(OwnedComm& new_comm, const Communicator& parent, const Settings& settings, ncclComm_t* out) {
  RankConfig rank_config = {};
  TUTTI_NCCL_CHECK(outcome_of(tutti_comm_rank(new_comm.comm, &rank_config.rank)));
  TUTTI_NCCL_CHECK(outcome_of(tutti_comm_ranks(new_comm.comm, &rank_config.ranks)));
  const auto communicator = std::make_shared<Communicator>(rank_config, settings, parent.device);
  TUTTI_NCCL_CHECK(communicator->adopt(std::exchange(new_comm.comm, nullptr)));
  if (parent.is_aborted()) return {ncclRemoteError, "the communicator was aborted while another was created from it"};
  ncclComm_t handle = nullptr;
  TUTTI_NCCL_CHECK(admit_new(communicator, handle));
  put(out, handle);
  return {};
}

// Settings of the new communicator. A null config means the parent's settings. Memory, transport and traffic class are
// always the parent's.
Outcome settings_of_part(const Communicator& parent, const ncclConfig_t* config, Settings& settings) {
  settings = parent.settings;
  if (config == nullptr) return {};
  Settings requested;
  TUTTI_NCCL_CHECK(read_config(config, requested));
  requested.memory = parent.settings.memory;
  if (requested.traffic_class != 0 && requested.traffic_class != parent.settings.traffic_class)
    log_warning("config.trafficClass " + std::to_string(requested.traffic_class) +
                " is ignored: the communicator uses the connections of its parent");
  requested.traffic_class = parent.settings.traffic_class;
  const char*& transport = requested.tuning.transport;
  if (transport == nullptr) transport = parent.settings.tuning.transport;
  if (transport != parent.settings.tuning.transport)
    return invalid_argument("config.netName differs from that of the parent communicator: leave it NULL");
  settings = std::move(requested);
  return {};
}

struct Splitting {
  int color, key;
  ncclComm_t* out;
  Settings settings = {};
};

// Runs in the parent's job or thread. A communicator whose calls were ended cannot communicate, so another of the same
// ranks is split in its place.
Outcome split(Communicator& parent, const Splitting& splitting) {
  OwnedComm new_comm, same_ranks;
  if (parent.has_ended_calls()) TUTTI_NCCL_CHECK(parent.shrink({}, parent.settings, same_ranks.comm));
  const tutti_comm whole = same_ranks.comm == nullptr ? parent.comm() : same_ranks.comm;
  const tutti_comm_options options = options_for(splitting.settings);
  TUTTI_NCCL_CHECK(outcome_of(tutti_comm_split(whole, splitting.color, splitting.key, &options, &new_comm.comm)));
  return new_comm.comm == nullptr ? Outcome() : present(new_comm, parent, splitting.settings, splitting.out);
}

Outcome begin_split(ncclComm_t comm, Splitting splitting, const ncclConfig_t* config) {
  if (splitting.out == nullptr) return invalid_argument("newcomm is NULL; pass a pointer to an ncclComm_t");
  put(splitting.out, nullptr);
  const Shared parent = find(comm);
  if (parent == nullptr) return no_communicator(comm);
  // A communicator whose calls were ended is split and shrunk like any other.
  if (!parent->has_ended_calls()) TUTTI_NCCL_CHECK(parent->ready());
  if (parent->state().code == ncclInProgress) return still_in_progress();
  if (splitting.color < kNoColor) {
    return invalid_argument("color is " + std::to_string(splitting.color) + ": pass 0 or more, or NCCL_SPLIT_NOCOLOR");
  }
  TUTTI_NCCL_CHECK(settings_of_part(*parent, config, splitting.settings));
  return submit(Job{parent, [parent, splitting] { return split(*parent, splitting); }, nullptr});
}

struct Shrinking {
  std::vector<int> excluded;
  ncclComm_t* out;
  Settings settings = {};
};

// Checks arguments before any communicator of the parent ends.
Outcome check_excluded(const std::vector<int>& excluded, const RankConfig& rank_config) {
  std::vector<bool> seen(static_cast<std::size_t>(rank_config.ranks));
  for (std::size_t i = 0; i < excluded.size(); ++i) {
    const int rank = excluded[i];
    const std::string which = "excludeRanksList[" + std::to_string(i) + "] is " + std::to_string(rank);
    if (rank < 0 || rank >= rank_config.ranks) {
      return invalid_argument(which + ", which is out of range; ranks are 0.." + std::to_string(rank_config.ranks - 1));
    }
    if (rank == rank_config.rank)
      return invalid_argument(which +
                              ", which is the calling rank; only ranks that are not excluded call this function");
    if (seen[static_cast<std::size_t>(rank)]) return invalid_argument(which + ", a duplicate; pass each rank once");
    seen[static_cast<std::size_t>(rank)] = true;
  }
  return {};
}

Outcome copy_excluded(const int* list, int count, std::vector<int>& excluded) {
  if (count < 0) {
    return invalid_argument("excludeRanksCount is " + std::to_string(count) + "; pass the number of ranks to exclude");
  }
  if (list == nullptr && count > 0) {
    return invalid_argument("excludeRanksList is NULL but excludeRanksCount is " + std::to_string(count) +
                            "; pass the ranks to exclude");
  }
  if (count > 0) excluded.assign(list, list + count);
  return {};
}

// Runs in the parent's job or thread.
Outcome shrink(Communicator& parent, const Shrinking& shrinking) {
  OwnedComm new_comm;
  TUTTI_NCCL_CHECK(parent.shrink(shrinking.excluded, shrinking.settings, new_comm.comm));
  return present(new_comm, parent, shrinking.settings, shrinking.out);
}

// A failed parent can be shrunk, too. With kShrinkAbort, calls end at once, even within a group: otherwise the thread
// or jobs of the parent might wait for them and never reach the shrink.
Outcome begin_shrink(ncclComm_t comm, Shrinking shrinking, const ncclConfig_t* config, int flags) {
  const Shared parent = find(comm);
  if (parent == nullptr) return no_communicator(comm);
  if (flags != kShrinkDefault && flags != kShrinkAbort) {
    return invalid_argument("shrinkFlags is " + std::to_string(flags) +
                            ": pass NCCL_SHRINK_DEFAULT or NCCL_SHRINK_ABORT");
  }
  TUTTI_NCCL_CHECK(parent->ready_to_end_calls());
  TUTTI_NCCL_CHECK(check_excluded(shrinking.excluded, parent->rank_config));
  TUTTI_NCCL_CHECK(settings_of_part(*parent, config, shrinking.settings));
  if (flags == kShrinkAbort) {
    (void)parent->end_calls(EndedBy::shrink);
  } else if (parent->state().code == ncclInProgress) {
    return still_in_progress(", or pass NCCL_SHRINK_ABORT");
  }
  return submit(Job{parent, [parent, shrinking] { return shrink(*parent, shrinking); }, nullptr});
}

}  // namespace

TUTTI_NCCL_API(ncclResult_t, CommSplit, ncclComm_t comm, int color, int key, ncclComm_t* out, ncclConfig_t* config) {
  return grouped("ncclCommSplit", [&] { return begin_split(comm, {color, key, out}, config); });
}

TUTTI_NCCL_API(ncclResult_t, CommShrink, ncclComm_t comm, const int* list, int count, ncclComm_t* out,
               ncclConfig_t* config, int flags) {
  return grouped("ncclCommShrink", [&]() -> Outcome {
    if (out == nullptr) return invalid_argument("newcomm is NULL; pass a pointer to an ncclComm_t");
    put(out, nullptr);
    Shrinking shrinking = {.excluded = {}, .out = out};
    TUTTI_NCCL_CHECK(copy_excluded(list, count, shrinking.excluded));
    return begin_shrink(comm, std::move(shrinking), config, flags);
  });
}

}  // namespace tutti::nccl
