#include "python/tutti/torch/native/work.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/ivalue.h>

namespace tutti_torch {
namespace {

// PyTorch's users look for "timeout".
LibraryError with_timeout(const LibraryError& error) {
  return LibraryError(error.status, error.msg() + "; the timeout of the operation has passed", error.rank);
}

}  // namespace

c10::TypePtr type_of(const TensorLists& outputs) {
  c10::TypePtr list = c10::ListType::create(c10::TensorType::get());
  return outputs.size() > 1 ? c10::ListType::create(list) : list;
}

c10::IValue value_of(const TensorLists& outputs) {
  if (outputs.empty()) return Tensors();
  if (outputs.size() == 1) return outputs[0];
  return outputs;
}

LibraryError not_completed_error(Milliseconds timeout, int rank) {
  return LibraryError(tutti_timeout,
                      c10::str("the operation has not completed within ", timeout.count(),
                               " ms; it continues: wait again, or increase the timeout"),
                      rank);
}

LibraryError in_operation(const LibraryError& error, const char* title, uint64_t sequence) {
  if (title == nullptr) return error;
  std::string name = title;
  name.erase(0, name.find(':') + 1);  // Without "tutti:" or "gloo:".
  const std::string operation =
      sequence > 0 ? c10::str(name, " (sequence number ", sequence, ")") : c10::str("tutti_", name);
  const std::string& text = error.msg();
  const size_t end = text.find(": ");
  const bool has_function = text.rfind("tutti_", 0) == 0 && end != std::string::npos;
  return LibraryError(error.status, c10::str(operation, ": ", has_function ? text.substr(end + 2) : text), error.rank);
}

uint64_t new_completion_key() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

CallWork::CallWork(const CallDescription& description, Owner owner, Body body)
    : Work(description.rank, description.type, description.title, description.inputs),
      owner_(std::move(owner)),
      body_(std::move(body)),
      outputs_(description.outputs),
      title_(description.title),
      timeout_(description.timeout),
      sequence_(description.sequence),
      key_(new_completion_key()) {}

void CallWork::run() {
  const auto start = std::chrono::steady_clock::now();
  std::exception_ptr error = call();
  duration_ms_ = std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count();
  body_ = nullptr;  // Frees the inputs.
  complete(error);
}

void CallWork::refuse(const LibraryError& error) {
  body_ = nullptr;
  complete(std::make_exception_ptr(error));
}

std::exception_ptr CallWork::call() {
  const auto start = std::chrono::steady_clock::now();
  at::AutoDispatchBelowADInplaceOrView no_autograd;  // Staging copies are no operations of the user's program.
  try {
    body_({owner_.communicator->handle(timeout_), nullptr});
    return nullptr;
  } catch (const LibraryError& caught) {
    LibraryError error = in_operation(caught, title_, sequence_);
    error.rank = rank_;
    if (error.fails_group()) owner_.communicator->note_raised();
    if (error.fails_group() && owner_.communicator->is_open()) owner_.hooks->start_abort();
    const bool limit_passed = timeout_.count() > 0 && std::chrono::steady_clock::now() - start >= timeout_;
    return std::make_exception_ptr(error.status == tutti_timeout && limit_passed ? with_timeout(error) : error);
  } catch (...) {
    return std::current_exception();
  }
}

void CallWork::complete(std::exception_ptr error) {
  auto self = c10::intrusive_ptr<CallWork>::unsafe_reclaim_from_nonowning(this);
  if (error == nullptr) owner_.hooks->call_completion(key_, duration_ms_);
  owner_.queue->count_complete();
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    future = future_;
    exception_ = error;
    completed_ = true;
    done_.store(true, std::memory_order_release);
  }
  if (recordFunctionEndCallback_) {
    recordFunctionEndCallback_();
    recordFunctionEndCallback_ = nullptr;
  }
  cv_.notify_all();
  if (future) mark(future);
}

void CallWork::mark(const c10::intrusive_ptr<c10::ivalue::Future>& future) {
  if (exception_ != nullptr) {
    future->setError(exception_);
  } else {
    future->markCompleted(value_of(outputs_));
  }
}

bool CallWork::wait(Milliseconds timeout) {
  // A thread with a timeout must not make the call itself, because the call has its own timeout.
  if (!done() && timeout == kNoTimeout) owner_.queue->help(*this);
  if (!is_complete_within(timeout)) throw not_completed_error(timeout, rank_);
  if (exception_ != nullptr) std::rethrow_exception(exception_);
  return true;
}

bool CallWork::is_complete_within(Milliseconds timeout) {
  if (done()) return true;
  std::unique_lock<std::mutex> lock(mutex_);
  const auto complete = [this] { return completed_; };
  if (timeout != kNoTimeout) return cv_.wait_for(lock, timeout, complete);
  cv_.wait(lock, complete);
  return true;
}

void CallWork::abort() { owner_.communicator->abort(); }

Tensors CallWork::result() {
  TORCH_CHECK(done(), "result() needs a completed operation; call wait() first");
  TORCH_CHECK(outputs_.size() <= 1, "result() is for operations with one list of outputs; use get_future()");
  return outputs_.empty() ? Tensors() : outputs_[0];
}

c10::intrusive_ptr<c10::ivalue::Future> CallWork::getFuture() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (future_) return future_;
  future_ = c10::make_intrusive<c10::ivalue::Future>(type_of(outputs_));
  auto future = future_;
  const bool completed = completed_;
  lock.unlock();
  if (completed) mark(future);
  return future;
}

}  // namespace tutti_torch
