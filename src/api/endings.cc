// How communicators end, and how their failures are told.
#include "src/api/call_entry.h"
#include "src/base/atomic.h"

namespace tutti {
namespace {

// No calls any more, by any handle.
void close(Door& door) {
  door.runner = nullptr;
  for (const tutti_comm view : door.membership->views) {
    if (Door* other = Doors::instance().find(view)) other->runner = nullptr;
  }
}

Status finalize(Door& door) {
  if (door.is_view)
    return invalid_usage("this handle comes from tutti_comm_with_options: finalize the communicator's own");
  Communicator* runner = door.runner;
  if (runner == nullptr) return no_runner(door);
  TUTTI_CHECK_OK(check_outside_group("finalized"));
  Status status = telling(*door.membership, runner->finalize());
  close(door);
  return status;
}

Status destroy(tutti_comm comm) {
  Door* door = TUTTI_TRY(door_of(comm));
  TUTTI_CHECK_OK(check_outside_group("destroyed"));
  if (door->is_view) {
    std::erase(door->membership->views, comm);
    Doors::instance().remove(comm);
    return {};
  }
  if (door->membership->communicator == nullptr) return no_runner(*door);
  Status status = door->membership->communicator->failure();
  if (status.ok()) {
    if (door->runner != nullptr) status = finalize(*door);
  } else if (door->membership->told) {
    status = {};
  }
  for (const tutti_comm view : door->membership->views) Doors::instance().remove(view);
  Doors::instance().remove(comm);
  return status;
}

void abort(Membership& membership) {
  membership.told = true;
  store_release(&membership.abort, 1U);
  if (membership.communicator != nullptr) membership.communicator->abort();
}

}  // namespace
}  // namespace tutti

using tutti::door_of;
using tutti::Doors;
using tutti::guarded;
using tutti::Status;

extern "C" {

tutti_status tutti_comm_finalize(tutti_comm comm) {
  return guarded("tutti_comm_finalize", [&]() -> Status { return tutti::finalize(*TUTTI_TRY(door_of(comm))); });
}

tutti_status tutti_comm_destroy(tutti_comm comm) {
  if (comm == nullptr) return tutti_ok;
  return guarded("tutti_comm_destroy", [&] { return tutti::destroy(comm); });
}

tutti_status tutti_comm_abort(tutti_comm comm) {
  return guarded("tutti_comm_abort", [&]() -> Status {
    return Doors::instance().visit(comm, [](tutti::Door& door) { tutti::abort(*door.membership); })
               ? Status()
               : tutti::no_communicator(comm);
  });
}

tutti_status tutti_comm_async_error(tutti_comm comm, tutti_status* error) {
  return guarded("tutti_comm_async_error", [&]() -> Status {
    if (error == nullptr) return tutti::invalid_argument("error is null: pass where to put it");
    const auto ask = [&](tutti::Door& door) {
      tutti::Communicator* communicator = door.membership->communicator.get();
      *error = tutti_in_progress;
      if (communicator == nullptr) return;
      *error = static_cast<tutti_status>(communicator->failure().code());
      if (*error != tutti_ok) door.membership->told = true;
    };
    return Doors::instance().visit(comm, ask) ? Status() : tutti::no_communicator(comm);
  });
}

const char* tutti_last_error(tutti_comm comm) {
  const char* text = "";
  if (comm == nullptr) return tutti::last_error_of_thread();
  const auto ask = [&](tutti::Door& door) {
    std::string& kept = door.membership->failure;
    tutti::Communicator* communicator = door.membership->communicator.get();
    if (kept.empty() && communicator != nullptr) kept = communicator->failure().message();
    if (!kept.empty()) door.membership->told = true;
    text = kept.c_str();
  };
  guarded("tutti_last_error",
          [&]() -> Status { return Doors::instance().visit(comm, ask) ? Status() : tutti::no_communicator(comm); });
  return text;
}

}  // extern "C"
