// Functions that create communicators and query them.
#include <algorithm>
#include <bit>

#include "src/api/call_entry.h"
#include "src/api/environment.h"
#include "src/api/joining.h"
#include "src/api/on_device.h"
#include "src/api/startup_log.h"
#include "src/api/ticket.h"
#include "src/base/log.h"

namespace tutti {
namespace {

Result<std::unique_ptr<Communicator>> create_placed(const UniqueId& id, const RankAndSize& rank_and_size,
                                                    CommunicatorOptions options) {
  const std::shared_ptr<Device> device = TUTTI_TRY(device_to_join_on(options));
  const LogDevice scope(ordinal_of(device));
  auto created = TUTTI_TRY(Communicator::create(id, rank_and_size.rank, rank_and_size.ranks, std::move(options)));
  log_created(*created, "unique id");
  TUTTI_CHECK_OK(move_to_device({created.get()}, device));
  return created;
}

Status check_ranks(int rank, int ranks) {
  if (ranks < 1) return invalid_argument("ranks is " + std::to_string(ranks) + ": pass 1 or more");
  if (static_cast<Rank>(ranks) > kMaxRanks) {
    return invalid_argument("ranks is " + std::to_string(ranks) + ": a communicator has at most " +
                            std::to_string(kMaxRanks));
  }
  if (rank >= 0 && rank < ranks) return {};
  return invalid_argument("rank is " + std::to_string(rank) + ": pass 0" +
                          (ranks > 1 ? " to " + std::to_string(ranks - 1) : ""));
}

Result<std::vector<tutti_comm>> admit_all(std::vector<std::unique_ptr<Communicator>> communicators) {
  std::vector<tutti_comm> handles;
  for (auto& communicator : communicators) {
    auto admitted = admit(std::move(communicator));
    if (admitted.ok()) {
      handles.push_back(admitted.value());
      continue;
    }
    for (const tutti_comm handle : handles) CommHandles::instance().remove(handle);
    return std::move(admitted).status();
  }
  return handles;
}

}  // namespace

Status check_outside_group(const char* action, const char* waits) {
  TUTTI_CHECK_OK(check_outside_callback(waits));
  if (!in_group()) return {};
  return invalid_usage(std::string(action) + " within a group: end the group first (tutti_group_end)");
}

const CommunicatorOptions& options_of(const CommHandle& handle) {
  return handle.options != nullptr ? *handle.options : handle.shared->communicator->options();
}

Status check_same_memory(const CommHandle& handle, const CommunicatorOptions& options) {
  const CommunicatorOptions& own = options_of(handle);
  if (options.transport != own.transport)
    return invalid_argument("options.tuning->transport is not that of the communicator: leave it null");
  if (options.traffic_class != own.traffic_class)
    return invalid_argument("options.traffic_class is not that of the communicator: leave it 0");
  if (options.memory == own.memory && options.device == own.device) return {};
  return invalid_argument("options.memory is not that of the communicator: leave it null");
}

Status no_communicator(tutti_comm comm) {
  if (comm == nullptr) return invalid_argument("comm is null: pass a communicator");
  return invalid_argument(
      "comm is not a communicator of this process: it was never created, was destroyed, or belongs to the parent of a "
      "fork");
}

Status no_runner(const CommHandle& handle) {
  if (handle.shared->communicator == nullptr) {
    return invalid_usage("the ranks of the communicator have not joined yet: it may only be aborted");
  }
  return invalid_usage("the communicator is finalized: only queries and destroy may follow");
}

}  // namespace tutti

using tutti::CommunicatorOptions;
using tutti::guarded;
using tutti::handle_of;
using tutti::invalid_argument;
using tutti::Rank;
using tutti::Status;

extern "C" {

tutti_status tutti_get_unique_id(tutti_unique_id* id) {
  return guarded("tutti_get_unique_id", [&]() -> Status {
    if (id == nullptr) return invalid_argument("id is null: pass a pointer to a tutti_unique_id");
    const tutti::UniqueId made = TUTTI_TRY(tutti::make_unique_id(tutti::environment_rendezvous()));
    *id = std::bit_cast<tutti_unique_id>(made);
    return {};
  });
}

tutti_status tutti_comm_create(const tutti_unique_id* id, int rank, int ranks, const tutti_comm_options* options,
                               tutti_comm* comm) {
  return guarded("tutti_comm_create", [&]() -> Status {
    if (id == nullptr) return invalid_argument("id is null: pass the id that tutti_get_unique_id made on one rank");
    if (comm == nullptr) return invalid_argument("comm is null: pass a pointer to a tutti_comm");
    TUTTI_CHECK_OK(tutti::check_ranks(rank, ranks));
    TUTTI_CHECK_OK(tutti::check_outside_group("communicators cannot be created"));
    CommunicatorOptions merged = TUTTI_TRY(tutti::options_over(tutti::environment_options(), options));
    const tutti::RankAndSize rank_and_size = {static_cast<Rank>(rank), static_cast<Rank>(ranks)};
    const auto make = [&](const std::uint32_t* abort) {
      merged.abort = abort;
      return tutti::create_placed(std::bit_cast<tutti::UniqueId>(*id), rank_and_size, merged);
    };
    return tutti::join(rank_and_size, make, comm);
  });
}

tutti_status tutti_comm_create_all(int ranks, const tutti_comm_options* options, tutti_comm* comms) {
  return guarded("tutti_comm_create_all", [&]() -> Status {
    if (comms == nullptr) return invalid_argument("comms is null: pass an array with one tutti_comm for each rank");
    TUTTI_CHECK_OK(tutti::check_ranks(0, ranks));
    TUTTI_CHECK_OK(tutti::check_outside_group("communicators cannot be created"));
    const CommunicatorOptions merged = TUTTI_TRY(tutti::options_over(tutti::environment_options(), options));
    const auto device = TUTTI_TRY(tutti::device_for(merged));
    const tutti::LogDevice scope(tutti::ordinal_of(device));
    auto created = TUTTI_TRY(tutti::Communicator::create_all(static_cast<Rank>(ranks), merged));
    tutti::log_created(*created.front(), "tutti_comm_create_all, all in this process");
    std::vector<tutti::Communicator*> members;
    for (const auto& each : created) members.push_back(each.get());
    TUTTI_CHECK_OK(tutti::move_to_device(members, device));
    const std::vector<tutti_comm> handles = TUTTI_TRY(tutti::admit_all(std::move(created)));
    std::copy(handles.begin(), handles.end(), comms);
    return {};
  });
}

tutti_status tutti_comm_create_from_environment(const tutti_comm_options* options, tutti_comm* comm) {
  return guarded("tutti_comm_create_from_environment", [&]() -> Status {
    if (comm == nullptr) return invalid_argument("comm is null: pass a pointer to a tutti_comm");
    TUTTI_CHECK_OK(tutti::check_outside_group("communicators cannot be created"));
    CommunicatorOptions merged = TUTTI_TRY(tutti::options_over(tutti::environment_options(), options));
    const auto device = TUTTI_TRY(tutti::device_to_join_on(merged));
    const tutti::LogDevice scope(tutti::ordinal_of(device));
    const tutti::LaunchedRank launched = TUTTI_TRY(tutti::find_launched_rank(tutti::environment()));
    const auto make = [&](const std::uint32_t* abort) -> tutti::Result<std::unique_ptr<tutti::Communicator>> {
      merged.abort = abort;
      auto joined = TUTTI_TRY(tutti::create_launched(launched, merged));
      tutti::log_created(*joined, launched.launcher.empty() ? "no launcher" : launched.launcher);
      TUTTI_CHECK_OK(tutti::move_to_device({joined.get()}, device));
      return joined;
    };
    return tutti::join({launched.rank, launched.ranks}, make, comm, launched.launcher);
  });
}

tutti_status tutti_comm_launcher(tutti_comm comm, const char** launcher) {
  return guarded("tutti_comm_launcher", [&]() -> Status {
    if (launcher == nullptr) return invalid_argument("launcher is null: pass a pointer to a const char*");
    *launcher = TUTTI_TRY(handle_of(comm))->shared->launcher.c_str();
    return {};
  });
}

tutti_status tutti_comm_split(tutti_comm comm, int color, int key, const tutti_comm_options* options,
                              tutti_comm* new_comm) {
  return guarded("tutti_comm_split", [&]() -> Status {
    const tutti::CommHandle* handle = TUTTI_TRY(handle_of(comm));
    if (new_comm == nullptr) return invalid_argument("new_comm is null: pass a pointer to a tutti_comm");
    if (color < TUTTI_COLOR_NONE) {
      return invalid_argument("color is " + std::to_string(color) + ": pass 0 or more, or TUTTI_COLOR_NONE");
    }
    TUTTI_CHECK_OK(tutti::check_outside_group("communicators cannot be split"));
    tutti::Communicator* runner = handle->runner;
    if (runner == nullptr) return tutti::no_runner(*handle);
    CommunicatorOptions merged = TUTTI_TRY(tutti::options_over(tutti::options_of(*handle), options));
    TUTTI_CHECK_OK(tutti::check_same_memory(*handle, merged));
    merged.abort = &handle->shared->abort;
    const tutti::Ticket ticket(handle->shared);
    ticket.await();
    auto made = runner->split(color, key, merged);
    if (!made.ok()) return tutti::note_failure(*handle->shared, std::move(made).status());
    tutti_comm created = nullptr;
    if (made.value() != nullptr) created = TUTTI_TRY(tutti::admit(std::move(made).value()));
    *new_comm = created;
    return {};
  });
}

tutti_status tutti_comm_with_options(tutti_comm comm, const tutti_comm_options* options, tutti_comm* view) {
  return guarded("tutti_comm_with_options", [&]() -> Status {
    const tutti::CommHandle* handle = TUTTI_TRY(handle_of(comm));
    if (view == nullptr) return invalid_argument("view is null: pass a pointer to a tutti_comm");
    if (handle->runner == nullptr) return tutti::no_runner(*handle);
    auto made = std::make_unique<tutti::CommHandle>();
    made->own_options = TUTTI_TRY(tutti::options_over(tutti::options_of(*handle), options));
    TUTTI_CHECK_OK(tutti::check_same_memory(*handle, made->own_options));
    if (made->own_options.name != tutti::options_of(*handle).name)
      return invalid_argument("options.name differs from the name of the communicator, which cannot change");
    if (made->own_options.wait != tutti::options_of(*handle).wait)
      return invalid_argument("options.wait differs from that of the communicator, which cannot change");
    made->options = &made->own_options;
    made->is_view = true;
    made->rank = handle->rank;
    made->ranks = handle->ranks;
    made->runner = handle->runner.load();
    made->shared = handle->shared;
    *view = static_cast<tutti_comm>(TUTTI_TRY(tutti::CommHandles::instance().insert(std::move(made))));
    handle->shared->views.push_back(*view);
    return {};
  });
}

tutti_status tutti_comm_rank(tutti_comm comm, int* rank) {
  return guarded("tutti_comm_rank", [&]() -> Status {
    if (rank == nullptr) return invalid_argument("rank is null: pass a pointer to an int");
    const tutti::CommHandle* handle = TUTTI_TRY(handle_of(comm));
    *rank = static_cast<int>(handle->rank);
    return {};
  });
}

tutti_status tutti_comm_ranks(tutti_comm comm, int* ranks) {
  return guarded("tutti_comm_ranks", [&]() -> Status {
    if (ranks == nullptr) return invalid_argument("ranks is null: pass a pointer to an int");
    const tutti::CommHandle* handle = TUTTI_TRY(handle_of(comm));
    *ranks = static_cast<int>(handle->ranks);
    return {};
  });
}

tutti_status tutti_comm_device_memory(tutti_comm comm, size_t* bytes) {
  return guarded("tutti_comm_device_memory", [&]() -> Status {
    if (bytes == nullptr) return invalid_argument("bytes is null: pass a pointer to a size_t");
    const tutti::CommHandle* handle = TUTTI_TRY(handle_of(comm));
    const tutti::DeviceBackend* backend = handle->shared->on_device;
    *bytes = backend == nullptr ? 0 : backend->device_bytes();
    return {};
  });
}

tutti_status tutti_comm_device(tutti_comm comm, int* device) {
  return guarded("tutti_comm_device", [&]() -> Status {
    if (device == nullptr) return invalid_argument("device is null: pass a pointer to an int");
    const tutti::CommHandle* handle = TUTTI_TRY(handle_of(comm));
    *device = tutti::device_of(*handle);
    return {};
  });
}

tutti_status tutti_current_device(int* device) {
  return guarded("tutti_current_device", [&]() -> Status {
    if (device == nullptr) return invalid_argument("device is null: pass a pointer to an int");
    *device = TUTTI_TRY(tutti::current_device());
    return {};
  });
}

}  // extern "C"
