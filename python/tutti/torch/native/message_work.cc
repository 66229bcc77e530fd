#include "python/tutti/torch/native/message_work.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/ivalue.h>

#include "python/tutti/torch/native/gil.h"

namespace tutti_torch {
namespace {

// Keeps a message until it is complete, and then frees it in the thread for callbacks, because that may need the GIL.
void keep_until_complete(MessagePtr message, std::shared_ptr<CallbackThread> callbacks) {
  struct Kept {
    MessagePtr message;
    std::shared_ptr<CallbackThread> callbacks;
  };
  const tutti_request request = message->request;
  auto* kept = new Kept{std::move(message), std::move(callbacks)};
  const auto release = [](void* argument, tutti_status /*status*/) {
    std::unique_ptr<Kept> ended(static_cast<Kept*>(argument));
    ended->callbacks->post([message = std::move(ended->message)] {});
  };
  // It fails in a child of fork() only, where no message is in progress.
  if (tutti_request_on_completion(request, release, kept) != tutti_ok) delete kept;
}

}  // namespace

Message::~Message() {
  const WithoutGil without_gil;
  if (request != nullptr) tutti_request_destroy(request);
}

bool Message::cancel() {
  if (tutti_request_destroy(request) != tutti_ok) return false;
  request = nullptr;
  return true;
}

MessageWork::MessageWork(const CallDescription& description, Owner owner, MessagePtr message)
    : Work(description.rank, description.type, description.title, description.inputs),
      owner_(std::move(owner)),
      message_(std::move(message)),
      outputs_(description.outputs.empty() ? Tensors() : description.outputs[0]),
      timeout_(description.timeout),
      sequence_(description.sequence),
      key_(new_completion_key()),
      is_receive_(description.type != c10d::OpType::SEND) {}

MessageWork::~MessageWork() {
  const WithoutGil without_gil;
  if (completed_ || message_->is_complete()) return;
  const bool is_cancelled = is_receive_ && message_->cancel();
  if (!is_cancelled) keep_until_complete(std::move(message_), owner_.callbacks);
}

bool MessageWork::isCompleted() {
  const WithoutGil without_gil;
  return advance(0);
}

bool MessageWork::wait(Milliseconds timeout) {
  const Milliseconds limit = timeout == kNoTimeout ? timeout_ : timeout;
  if (!advance(limit.count() > 0 ? limit.count() : -1)) {
    throw LibraryError(tutti_timeout,
                       c10::str(operation(), ": the message has not completed within ", limit.count(),
                                " ms; it continues: make the matching call, wait again, or increase the timeout"),
                       rank_);
  }
  if (exception_ != nullptr) std::rethrow_exception(exception_);
  return true;
}

void MessageWork::abort() { message_->communicator->abort(); }

// Waits for the request, and completes this work. Returns false if the time has passed.
bool MessageWork::advance(int64_t timeout_ms) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (completed_) return true;
  }
  tutti_message message = TUTTI_MESSAGE_DEFAULT;
  const tutti_status status = tutti_request_wait(message_->request, timeout_ms, &message);
  if (status == tutti_in_progress) return false;
  if (status == tutti_ok) {
    source_ = message.peer;
    complete(nullptr);
  } else {
    const LibraryError error(status, tutti_last_error(nullptr), rank_);
    if (error.fails_group()) message_->communicator->note_raised();
    if (status == tutti_remote_error) owner_.hooks->start_abort();
    complete(std::make_exception_ptr(error));
  }
  return true;
}

// Copies what has been received to the tensor. Returns the exception of the copy, or null.
std::exception_ptr MessageWork::finish_buffer() {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  try {
    message_->buffer.finish();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

// Completes this work once. Returns when it is complete.
void MessageWork::complete(std::exception_ptr error) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (completed_) return;
  if (error == nullptr && is_receive_) error = finish_buffer();
  exception_ = error;
  completed_ = true;
  auto future = future_;
  lock.unlock();
  if (recordFunctionEndCallback_) recordFunctionEndCallback_();
  cv_.notify_all();
  if (error == nullptr) owner_.hooks->call_completion(key_, 0);
  if (future && error != nullptr) future->setError(error);
  if (future && error == nullptr) future->markCompleted(outputs_);
}

void MessageWork::watch(const c10::intrusive_ptr<MessageWork>& work) {
  {
    std::lock_guard<std::mutex> lock(work->mutex_);
    if (work->watched_ || work->completed_) return;
    work->watched_ = true;
  }
  using Held = c10::intrusive_ptr<MessageWork>;
  auto* held = new Held(work);  // Keeps the work until it is complete.
  const auto report = [](void* argument, tutti_status /*status*/) {
    const std::unique_ptr<Held> watched(static_cast<Held*>(argument));
    const auto callbacks = (*watched)->owner_.callbacks;
    callbacks->post([work = std::move(*watched)] { work->advance(0); });
  };
  const tutti_status status = tutti_request_on_completion(work->message_->request, report, held);
  if (status != tutti_ok) delete held;
  check(status, work->rank_);
}

c10::intrusive_ptr<c10::ivalue::Future> MessageWork::getFuture() {
  const WithoutGil without_gil;
  c10::intrusive_ptr<c10::ivalue::Future> future;
  bool completed = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (future_) return future_;
    future = future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    completed = completed_;
  }
  if (!completed) {
    watch(c10::intrusive_ptr<MessageWork>::unsafe_reclaim_from_nonowning(this));
  } else if (exception_ != nullptr) {
    future->setError(exception_);
  } else {
    future->markCompleted(outputs_);
  }
  return future;
}

}  // namespace tutti_torch
