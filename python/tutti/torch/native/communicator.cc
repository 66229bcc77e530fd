#include "python/tutti/torch/native/communicator.h"

#include <c10/util/Exception.h>
#include <unistd.h>

namespace tutti_torch {

void check(tutti_status status) {
  if (status != tutti_ok) std::rethrow_exception(backend_error(status, tutti_last_error(nullptr)));
}

std::exception_ptr backend_error(tutti_status status, const std::string& message) {
  std::string text = message.empty() ? tutti_status_name(status) : message;
  if (status == tutti_timeout)
    text += "; the timeout of the operation has passed";  // PyTorch's users look for timeout.
  return std::make_exception_ptr(c10::DistBackendError({__func__, __FILE__, __LINE__}, text));
}

Communicator::Communicator(tutti_comm comm, std::chrono::milliseconds timeout)
    : comm_(comm), timeout_(timeout), process_(getpid()) {}

Communicator::~Communicator() { leave(); }

tutti_comm Communicator::default_handle() const {
  if (comm_ == nullptr) C10_THROW_ERROR(DistBackendError, "the process group has been shut down; create a new one");
  return comm_;
}

tutti_comm Communicator::handle(std::chrono::milliseconds timeout) {
  default_handle();
  if (timeout == timeout_) return comm_;
  const auto found = views_.find(timeout);
  if (found != views_.end()) return found->second;
  tutti_comm_options options = TUTTI_COMM_OPTIONS_DEFAULT;
  options.timeout_ms = timeout.count() > 0 ? timeout.count() : -1;
  tutti_comm view = nullptr;
  check(tutti_comm_with_options(comm_, &options, &view));
  views_.emplace(timeout, view);
  return view;
}

void Communicator::abort() {
  if (comm_ != nullptr && process_ == getpid()) tutti_comm_abort(comm_);
}

void Communicator::leave() {
  if (comm_ != nullptr && process_ == getpid()) tutti_comm_leave(comm_);
  comm_ = nullptr;
  views_.clear();
}

}  // namespace tutti_torch
