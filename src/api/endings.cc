// How communicators end, and how their failures are told.
#include "src/api/endings.h"

#include "src/api/call_entry.h"
#include "src/api/ticket.h"
#include "src/base/atomic.h"
#include "src/base/log.h"
#include "src/base/service_thread.h"
#include "src/communicator/device/device_communicator.h"

namespace tutti {
namespace {

// No calls any more, by any handle.
void close(Door& door) {
  door.runner = nullptr;
  for (const tutti_comm view : door.shared->views) {
    if (Door* other = Doors::instance().find(view)) other->runner = nullptr;
  }
}

void abort(SharedComm& shared) {
  shared.told = true;
  store_release(&shared.abort, 1U);
  if (shared.communicator != nullptr) shared.communicator->abort();
}

Status check_ending(const Door& door, const Ending& ending) {
  if (!ending.destroys && door.is_view)
    return invalid_usage("this handle comes from tutti_comm_with_options: finalize the communicator's own");
  const bool possible = ending.destroys ? door.shared->communicator != nullptr : door.runner != nullptr;
  return possible ? Status() : no_runner(door);
}

Status finalize(Door& door, const Ending& ending) {
  Communicator& runner = *door.runner;
  Status status = telling(*door.shared, ending.waits ? runner.finalize() : runner.leave());
  close(door);
  return status;
}

// What may have to wait for the peers.
Status take_leave(Door& door, const Ending& ending) {
  TUTTI_CHECK_OK(check_ending(door, ending));
  if (!ending.destroys) return finalize(door, ending);
  if (door.is_view) return {};
  Status status = door.shared->communicator->failure();
  if (!status.ok()) return door.shared->told ? Status() : std::move(status);
  return door.runner != nullptr ? finalize(door, ending) : Status();
}

void tell_of_wire(const Door& door) {
  const Communicator* communicator = door.shared->communicator.get();
  if (communicator == nullptr || !logs(LogLevel::info)) return;
  const WireStatistics seen = communicator->wire_statistics();
  if (seen.rounded_calls == 0) return;
  const std::string& name = communicator->options().name;
  log(LogLevel::info, "rank %u%s%s: %llu calls rounded, %llu not; %llu bytes of elements went in %llu of messages",
      door.rank, name.empty() ? "" : " of ", name.c_str(), static_cast<unsigned long long>(seen.rounded_calls),
      static_cast<unsigned long long>(seen.raw_calls), static_cast<unsigned long long>(seen.carried.element_bytes),
      static_cast<unsigned long long>(seen.carried.message_bytes));
}

void remove(tutti_comm comm, const Door& door) {
  const std::shared_ptr<SharedComm> shared = door.shared;
  if (door.is_view) {
    std::erase(shared->views, comm);
  } else {
    tell_of_wire(door);
    for (const tutti_comm view : shared->views) Doors::instance().remove(view);
  }
  Doors::instance().remove(comm);
}

// A thread for each but the first: each waits for the others to take their leave, too.
std::vector<Status> take_leaves(const std::vector<Ending>& endings, const std::vector<Door*>& doors) {
  std::vector<Status> statuses(endings.size());
  const auto take = [&](std::size_t i) { statuses[i] = caught([&] { return take_leave(*doors[i], endings[i]); }); };
  std::vector<std::unique_ptr<ServiceThread>> threads(endings.size());
  for (std::size_t i = 1; i < endings.size(); ++i) {
    auto started = ServiceThread::start([&take, i] { take(i); });
    if (started.ok()) {
      threads[i] = std::move(started).value();
    } else {
      abort(*doors[i]->shared);  // Nobody shall wait for it.
      statuses[i] = std::move(started).status();
    }
  }
  take(0);
  threads.clear();  // Joins them.
  return statuses;
}

Status await_own_calls(const std::shared_ptr<SharedComm>& shared) {
  if (shared->on_device != nullptr) return shared->on_device->await_own_calls();
  const Ticket turn(shared);
  return turn.await();
}

Status end(const Ending& ending) {
  const Door* door = TUTTI_TRY(door_of(ending.comm));
  TUTTI_CHECK_OK(check_ending(*door, ending));
  return group_depth == 0 ? end_all({ending}) : end_with_group(ending);
}

}  // namespace

Status end_all(const std::vector<Ending>& endings) {
  Status first;
  std::vector<Ending> possible;
  std::vector<Door*> doors;
  for (const Ending& ending : endings) {
    auto door = door_of(ending.comm);  // Another thread may have ended it since the group was told to.
    if (door.ok()) {
      possible.push_back(ending);
      doors.push_back(door.value());
    } else if (first.ok()) {
      first = std::move(door).status();
    }
  }
  if (possible.empty()) return first;
  for (Status& status : take_leaves(possible, doors)) {
    if (first.ok()) first = std::move(status);
  }
  // A view may be gone by then, with its communicator.
  for (const Ending& ending : possible) {
    const Door* door = Doors::instance().find(ending.comm);
    if (ending.destroys && door != nullptr) remove(ending.comm, *door);
  }
  return first;
}

}  // namespace tutti

using tutti::Doors;
using tutti::guarded;
using tutti::Status;

extern "C" {

tutti_status tutti_comm_synchronize(tutti_comm comm) {
  return guarded("tutti_comm_synchronize", [&]() -> Status {
    const tutti::Door* door = TUTTI_TRY(tutti::door_of(comm));
    if (door->runner == nullptr) return tutti::no_runner(*door);
    return tutti::telling(*door->shared, tutti::await_own_calls(door->shared));
  });
}

tutti_status tutti_comm_finalize(tutti_comm comm) {
  return tutti::held_by_group(
      guarded("tutti_comm_finalize", [&] { return tutti::end({.comm = comm, .destroys = false}); }));
}

tutti_status tutti_comm_destroy(tutti_comm comm) {
  if (comm == nullptr) return tutti_ok;
  return tutti::held_by_group(
      guarded("tutti_comm_destroy", [&] { return tutti::end({.comm = comm, .destroys = true}); }));
}

tutti_status tutti_comm_leave(tutti_comm comm) {
  if (comm == nullptr) return tutti_ok;
  return tutti::held_by_group(
      guarded("tutti_comm_leave", [&] { return tutti::end({.comm = comm, .destroys = true, .waits = false}); }));
}

tutti_status tutti_comm_abort(tutti_comm comm) {
  return guarded("tutti_comm_abort", [&]() -> Status {
    return Doors::instance().visit(comm, [](tutti::Door& door) { tutti::abort(*door.shared); })
               ? Status()
               : tutti::no_communicator(comm);
  });
}

tutti_status tutti_comm_async_error(tutti_comm comm, tutti_status* error) {
  return guarded("tutti_comm_async_error", [&]() -> Status {
    if (error == nullptr) return tutti::invalid_argument("error is null: pass where to put it");
    const auto ask = [&](tutti::Door& door) {
      tutti::Communicator* communicator = door.shared->communicator.get();
      *error = tutti_in_progress;
      if (communicator == nullptr) return;
      *error = static_cast<tutti_status>(communicator->failure().code());
      if (*error != tutti_ok) door.shared->told = true;
    };
    return Doors::instance().visit(comm, ask) ? Status() : tutti::no_communicator(comm);
  });
}

const char* tutti_last_error(tutti_comm comm) {
  const char* text = "";
  if (comm == nullptr) return tutti::last_error_of_thread();
  const auto ask = [&](tutti::Door& door) {
    std::string& kept = door.shared->failure;
    tutti::Communicator* communicator = door.shared->communicator.get();
    if (kept.empty() && communicator != nullptr) kept = communicator->failure().message();
    if (!kept.empty()) door.shared->told = true;
    text = kept.c_str();
  };
  guarded("tutti_last_error",
          [&]() -> Status { return Doors::instance().visit(comm, ask) ? Status() : tutti::no_communicator(comm); });
  return text;
}

}  // extern "C"
