#include "python/tutti/torch/native/communicator.h"

#include <unistd.h>

#include <utility>

namespace tutti_torch {

LibraryError::LibraryError(tutti_status status, const std::string& text, int rank)
    : DistBackendError({__func__, __FILE__, __LINE__}, text.empty() ? tutti_status_name(status) : text),
      status(status),
      rank(rank) {}

void check(tutti_status status, int rank) {
  if (status != tutti_ok) throw LibraryError(status, tutti_last_error(nullptr), rank);
}

LibraryError shut_down_error(int rank) {
  return LibraryError(tutti_invalid_usage, "the process group has been shut down; create a new one", rank);
}

namespace {

LibraryError no_members_error(int rank) {
  return LibraryError(tutti_invalid_usage,
                      "the process group has no members; call torch.distributed._reconfigure() first", rank);
}

void warn_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const LibraryError& error) {
    TORCH_WARN("the process group ends after a failure that no operation of this rank has raised: ", error.msg());
  }
}

}  // namespace

Communicator::Communicator(tutti_comm comm, std::chrono::milliseconds timeout, int rank)
    : comm_(comm), timeout_(timeout), rank_(rank), process_(getpid()), has_members_(comm != nullptr) {}

Communicator::~Communicator() { leave(); }

tutti_comm Communicator::default_handle() const {
  const tutti_comm comm = comm_;
  if (comm == nullptr) throw has_members_ ? shut_down_error(rank_) : no_members_error(rank_);
  return comm;
}

tutti_comm Communicator::handle(std::chrono::milliseconds timeout) {
  const tutti_comm comm = default_handle();
  if (timeout == timeout_) return comm;
  if (view_ != nullptr && timeout == view_timeout_) return view_;
  if (view_ != nullptr) check(tutti_comm_destroy(std::exchange(view_, nullptr)));
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.timeout_ms = timeout.count() > 0 ? timeout.count() : -1;
  check(tutti_comm_with_options(comm, &options, &view_));
  view_timeout_ = timeout;
  return view_;
}

std::exception_ptr Communicator::failure() {
  if (process_ != getpid()) return nullptr;
  const std::lock_guard<std::mutex> lock(leaving_);
  find_failure();
  return failure_;
}

void Communicator::find_failure() {
  const tutti_comm comm = comm_;
  if (failure_ || comm == nullptr) return;
  tutti_status status = tutti_ok;
  if (tutti_comm_async_error(comm, &status) != tutti_ok || status == tutti_ok) return;
  failure_ = std::make_exception_ptr(LibraryError(status, tutti_last_error(comm), rank_));
}

void Communicator::abort() {
  const tutti_comm comm = comm_;
  if (comm == nullptr || process_ != getpid()) return;
  note_raised();
  tutti_comm_abort(comm);
}

void Communicator::leave() {
  if (process_ != getpid()) {
    comm_ = nullptr;
    return;
  }
  const std::lock_guard<std::mutex> lock(leaving_);
  find_failure();  // For works that are waited for later.
  const tutti_comm comm = comm_.exchange(nullptr);
  if (comm == nullptr) return;
  if (failure_ != nullptr && !raised_) warn_of(failure_);
  tutti_comm_leave(comm);
}

}  // namespace tutti_torch
