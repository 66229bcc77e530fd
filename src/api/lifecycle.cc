// End of communicators, and reports of their failures.
#include "src/api/lifecycle.h"

#include <mutex>
#include <shared_mutex>

#include "src/api/call_entry.h"
#include "src/api/ticket.h"
#include "src/base/atomic.h"
#include "src/base/log.h"
#include "src/base/service_thread.h"
#include "src/communicator/device/device_backend.h"

namespace tutti {
namespace {

// Stops calls through all handles of the communicator.
void close(CommHandle& handle) {
  handle.runner = nullptr;
  for (const tutti_comm view : handle.shared->views) {
    if (CommHandle* other = CommHandles::instance().find(view)) other->runner = nullptr;
  }
}

void abort(SharedComm& shared) {
  shared.reported = true;
  store_release(&shared.abort, 1U);
  if (shared.communicator != nullptr) shared.communicator->abort();
}

Status check_ending(const CommHandle& handle, const Ending& ending) {
  if (!ending.destroys && handle.is_view)
    return invalid_usage("this handle comes from tutti_comm_with_options: finalize the communicator's own");
  const bool possible = ending.destroys ? handle.shared->communicator != nullptr : handle.runner != nullptr;
  return possible ? Status() : no_runner(handle);
}

Status finalize(CommHandle& handle, const Ending& ending) {
  Communicator& runner = *handle.runner;
  Status status = note_failure(*handle.shared, ending.waits ? runner.finalize() : runner.leave());
  close(handle);
  return status;
}

// Ends the communicator. May wait for the peers.
Status take_leave(CommHandle& handle, const Ending& ending) {
  TUTTI_CHECK_OK(check_ending(handle, ending));
  if (!ending.destroys) return finalize(handle, ending);
  if (handle.is_view) return {};
  Status status = handle.shared->communicator->failure();
  if (!status.ok()) return handle.shared->reported ? Status() : std::move(status);
  return handle.runner != nullptr ? finalize(handle, ending) : Status();
}

void report_compression(const CommHandle& handle) {
  const Communicator* communicator = handle.shared->communicator.get();
  if (communicator == nullptr || !logs(LogLevel::info)) return;
  const CompressionStatistics seen = communicator->compression_statistics();
  if (seen.compressed_calls == 0) return;
  const std::string& name = communicator->options().name;
  log(LogLevel::info, "rank %u%s%s: %llu calls compressed, %llu not; %llu bytes of elements were sent as %llu bytes",
      handle.rank, name.empty() ? "" : " of ", name.c_str(), static_cast<unsigned long long>(seen.compressed_calls),
      static_cast<unsigned long long>(seen.uncompressed_calls),
      static_cast<unsigned long long>(seen.carried.element_bytes),
      static_cast<unsigned long long>(seen.carried.message_bytes));
}

void remove(tutti_comm comm, const CommHandle& handle) {
  const std::shared_ptr<SharedComm> shared = handle.shared;
  if (handle.is_view) {
    std::erase(shared->views, comm);
  } else {
    report_compression(handle);
    for (const tutti_comm view : shared->views) CommHandles::instance().remove(view);
  }
  CommHandles::instance().remove(comm);
}

// Starts a thread for each ending except the first, since each may wait for the others.
std::vector<Status> take_leaves(const std::vector<Ending>& endings, const std::vector<CommHandle*>& handles) {
  std::vector<Status> statuses(endings.size());
  const auto take = [&](std::size_t i) { statuses[i] = caught([&] { return take_leave(*handles[i], endings[i]); }); };
  std::vector<std::unique_ptr<LibraryThread>> threads(endings.size());
  for (std::size_t i = 1; i < endings.size(); ++i) {
    auto started = LibraryThread::start([&take, i] { take(i); });
    if (started.ok()) {
      threads[i] = std::move(started).value();
    } else {
      abort(*handles[i]->shared);  // Peers must not wait for this rank.
      statuses[i] = std::move(started).status();
    }
  }
  take(0);
  threads.clear();  // Joins the threads.
  return statuses;
}

Status await_own_calls(const std::shared_ptr<SharedComm>& shared) {
  if (shared->on_device != nullptr) return shared->on_device->await_own_calls();
  Ticket(shared).await();
  return {};
}

Status end(const Ending& ending) {
  const CommHandle* handle = TUTTI_TRY(handle_of(ending.comm));
  TUTTI_CHECK_OK(check_ending(*handle, ending));
  TUTTI_CHECK_OK(check_outside_callback("ending a communicator"));
  return in_group() ? end_with_group(ending) : end_all({ending});
}

// Runs question(shared, communicator) while the communicator is not destroyed; `communicator` is null while the ranks
// join. Any thread may call it. `question` may wait for a peer: only the end of this communicator waits for it.
template <typename Question>
Status ask(tutti_comm comm, Question&& question) {
  std::shared_lock<std::shared_mutex> in_use;
  SharedComm* shared = nullptr;
  Communicator* communicator = nullptr;
  const auto enter = [&](const CommHandle& handle) {
    shared = handle.shared.get();
    communicator = shared->communicator.get();
    in_use = std::shared_lock(shared->in_use);
  };
  if (!CommHandles::instance().visit(comm, enter)) return no_communicator(comm);
  question(*shared, communicator);
  return {};
}

// Returns why the communicator failed, or "". The text is valid until the communicator is destroyed.
const char* text_of_failure(SharedComm& shared, Communicator* communicator) {
  const std::lock_guard lock(shared.failure_mutex);
  if (shared.failure.empty() && communicator != nullptr) shared.failure = communicator->failure().message();
  if (shared.failure.empty()) return "";  // A later failure changes the member.
  shared.reported = true;
  return shared.failure.c_str();
}

}  // namespace

Status end_all(const std::vector<Ending>& endings) {
  Status first;
  std::vector<Ending> possible;
  std::vector<CommHandle*> handles;
  for (const Ending& ending : endings) {
    auto handle = handle_of(ending.comm);  // Another thread may have destroyed the handle since the group stored it.
    if (handle.ok()) {
      possible.push_back(ending);
      handles.push_back(handle.value());
    } else if (first.ok()) {
      first = std::move(handle).status();
    }
  }
  if (possible.empty()) return first;
  for (Status& status : take_leaves(possible, handles)) {
    if (first.ok()) first = std::move(status);
  }
  // The handle of a view may be invalid by now: its communicator may have been removed first.
  for (const Ending& ending : possible) {
    const CommHandle* handle = CommHandles::instance().find(ending.comm);
    if (ending.destroys && handle != nullptr) remove(ending.comm, *handle);
  }
  return first;
}

Status note_failure_of(tutti_comm comm, Status status) {
  if (status.ok()) return status;
  (void)caught([&] {
    return ask(comm, [&](SharedComm& shared, Communicator* communicator) {
      if (communicator != nullptr) (void)note_failure(shared, status.copy());
    });
  });
  return status;
}

}  // namespace tutti

using tutti::CommHandles;
using tutti::guarded;
using tutti::Status;

extern "C" {

tutti_status tutti_comm_synchronize(tutti_comm comm) {
  return guarded("tutti_comm_synchronize", [&]() -> Status {
    TUTTI_CHECK_OK(tutti::check_outside_callback("synchronizing"));
    const tutti::CommHandle* handle = TUTTI_TRY(tutti::handle_of(comm));
    if (handle->runner == nullptr) return tutti::no_runner(*handle);
    return tutti::note_failure(*handle->shared, tutti::await_own_calls(handle->shared));
  });
}

tutti_status tutti_comm_finalize(tutti_comm comm) {
  return tutti::held_by_group(
      guarded("tutti_comm_finalize", [&] { return tutti::end({.comm = comm, .destroys = false}); }), comm);
}

tutti_status tutti_comm_destroy(tutti_comm comm) {
  if (comm == nullptr) return tutti_ok;
  return tutti::held_by_group(
      guarded("tutti_comm_destroy", [&] { return tutti::end({.comm = comm, .destroys = true}); }), comm);
}

tutti_status tutti_comm_leave(tutti_comm comm) {
  if (comm == nullptr) return tutti_ok;
  return tutti::held_by_group(
      guarded("tutti_comm_leave", [&] { return tutti::end({.comm = comm, .destroys = true, .waits = false}); }), comm);
}

tutti_status tutti_comm_abort(tutti_comm comm) {
  return guarded("tutti_comm_abort", [&]() -> Status {
    return CommHandles::instance().visit(comm, [](tutti::CommHandle& handle) { tutti::abort(*handle.shared); })
               ? Status()
               : tutti::no_communicator(comm);
  });
}

tutti_status tutti_comm_async_error(tutti_comm comm, tutti_status* error) {
  return guarded("tutti_comm_async_error", [&]() -> Status {
    if (error == nullptr) return tutti::invalid_argument("error is null: pass a pointer to a tutti_status");
    return tutti::ask(comm, [&](tutti::SharedComm& shared, tutti::Communicator* communicator) {
      *error = tutti_in_progress;
      if (communicator == nullptr) return;
      *error = static_cast<tutti_status>(communicator->failure().code());
      if (*error != tutti_ok) shared.reported = true;
    });
  });
}

const char* tutti_last_error(tutti_comm comm) {
  if (comm == nullptr) return tutti::last_error_of_thread();
  const char* text = "";
  guarded("tutti_last_error", [&] {
    return tutti::ask(comm, [&](tutti::SharedComm& shared, tutti::Communicator* communicator) {
      text = tutti::text_of_failure(shared, communicator);
    });
  });
  return text;
}

}  // extern "C"
