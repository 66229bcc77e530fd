#include "python/tutti/torch/native/message_work.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/ivalue.h>

namespace tutti_torch {

Message::~Message() {
  if (request != nullptr) tutti_request_destroy(request);
}

bool Message::cancel() {
  if (tutti_request_destroy(request) != tutti_ok) return false;
  request = nullptr;
  return true;
}

void DroppedMessages::add(MessagePtr message) {
  std::vector<MessagePtr> complete;  // Freed after the mutex.
  std::lock_guard<std::mutex> lock(mutex_);
  const auto end =
      std::partition(messages_.begin(), messages_.end(), [](const MessagePtr& m) { return !m->is_complete(); });
  complete.assign(std::make_move_iterator(end), std::make_move_iterator(messages_.end()));
  messages_.erase(end, messages_.end());
  messages_.push_back(std::move(message));
}

void DroppedMessages::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  messages_.clear();
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
  if (completed_ || message_->is_complete()) return;
  const bool is_cancelled = is_receive_ && message_->cancel();
  if (!is_cancelled) owner_.dropped->add(std::move(message_));
}

bool MessageWork::isCompleted() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (completed_) return true;
  }
  tutti_message message = TUTTI_MESSAGE_DEFAULT;
  const tutti_status status = tutti_request_wait(message_->request, 0, &message);
  if (status == tutti_in_progress) return false;
  source_ = message.peer;
  complete(status, tutti_last_error(nullptr));
  return true;
}

bool MessageWork::wait(Milliseconds timeout) {
  const Milliseconds limit = timeout == kNoTimeout ? timeout_ : timeout;
  tutti_message message = TUTTI_MESSAGE_DEFAULT;
  const tutti_status status = tutti_request_wait(message_->request, limit.count() > 0 ? limit.count() : -1, &message);
  if (status == tutti_in_progress) {
    C10_THROW_ERROR(DistBackendError, c10::str(is_receive_ ? "recv" : "send", ": no peer has met this call within ",
                                               limit.count(), " ms; start the matching call, or increase the timeout"));
  }
  if (status == tutti_ok) source_ = message.peer;
  complete(status, tutti_last_error(nullptr));
  if (exception_ != nullptr) std::rethrow_exception(exception_);
  return true;
}

void MessageWork::abort() { message_->communicator->abort(); }

// Completes this work once. Returns when it is complete.
void MessageWork::complete(tutti_status status, const std::string& error) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (completed_) return;
  if (status == tutti_ok && is_receive_) {
    at::AutoDispatchBelowADInplaceOrView no_autograd;
    message_->buffer.finish();
  }
  if (status != tutti_ok) exception_ = backend_error(status, error);
  completed_ = true;
  auto future = future_;
  lock.unlock();
  if (recordFunctionEndCallback_) recordFunctionEndCallback_();
  cv_.notify_all();
  if (status == tutti_ok && owner_.completed) owner_.completed(key_, 0);
  if (future && exception_ != nullptr) future->setError(exception_);
  if (future && exception_ == nullptr) future->markCompleted(outputs_);
}

void MessageWork::watch(const c10::intrusive_ptr<MessageWork>& work) {
  {
    std::lock_guard<std::mutex> lock(work->mutex_);
    if (work->watched_ || work->completed_) return;
    work->watched_ = true;
  }
  using Held = c10::intrusive_ptr<MessageWork>;
  auto* held = new Held(work);  // Keeps the work until it is complete.
  const auto report = [](void* argument, tutti_status status) {
    const std::unique_ptr<Held> watched(static_cast<Held*>(argument));
    tutti_message message = TUTTI_MESSAGE_DEFAULT;
    const std::string error = tutti_last_error(nullptr);
    if (tutti_request_wait((*watched)->message_->request, 0, &message) == tutti_ok) (*watched)->source_ = message.peer;
    (*watched)->complete(status, error);
  };
  const tutti_status status = tutti_request_on_completion(work->message_->request, report, held);
  if (status != tutti_ok) delete held;
  check(status);
}

c10::intrusive_ptr<c10::ivalue::Future> MessageWork::getFuture() {
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
