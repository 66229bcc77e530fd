#include "src/messages/request.h"

#include <chrono>
#include <utility>

namespace tutti {

std::string describe(const MessageCall& call) {
  const bool sends = call.direction == MessageDirection::send;
  const std::string peer = call.peer == kAnyRank ? "any rank" : "rank " + std::to_string(call.peer);
  return std::string(sends ? "isend(" : "irecv(") + std::to_string(call.count) + " " + name(call.type) +
         (sends ? ", to " : ", from ") + peer + ", tag " + std::to_string(call.tag) + ")";
}

bool MessageRequest::complete() const {
  const std::lock_guard lock(mutex_);
  return complete_;
}

bool MessageRequest::wait(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  while (!complete_) {
    if (deadline.passed()) return false;
    changed_.wait_for(lock, std::chrono::milliseconds(deadline.left_ms()));
  }
  return true;
}

Status MessageRequest::on_completion(Callback callback) {
  {
    const std::lock_guard lock(mutex_);
    if (retired_) return invalid_argument("another thread has destroyed the request");
    if (stage_ != CallbackStage::none)
      return invalid_usage("the request has a completion function already: set it only once");
    stage_ = CallbackStage::waiting;
    callback_ = std::move(callback);
    if (!complete_) return {};
  }
  run_callback();
  return {};
}

void MessageRequest::retire() {
  Lock lock(mutex_);
  TUTTI_ASSERT(complete_);
  retired_ = true;
  run_callback(lock);
  changed_.wait(lock, [this] { return !runs_elsewhere(); });
}

bool MessageRequest::retire_at_once() {
  Lock lock(mutex_);
  TUTTI_ASSERT(complete_);
  if (runs_elsewhere()) return false;
  retired_ = true;
  run_callback(lock);
  return true;
}

bool MessageRequest::end(Status status, const MessageInfo& info) {
  const std::lock_guard lock(mutex_);
  TUTTI_ASSERT(!complete_);
  status_ = std::move(status);
  info_ = info;
  complete_ = true;
  changed_.notify_all();
  return stage_ == CallbackStage::waiting;
}

void MessageRequest::run_callback() {
  Lock lock(mutex_);
  run_callback(lock);
}

// Returns whether another thread runs the callback.
bool MessageRequest::runs_elsewhere() const {
  return stage_ == CallbackStage::running && caller_ != std::this_thread::get_id();
}

// Releases the lock during the callback.
void MessageRequest::run_callback(Lock& lock) {
  if (stage_ != CallbackStage::waiting) return;
  stage_ = CallbackStage::running;
  caller_ = std::this_thread::get_id();
  lock.unlock();
  std::exchange(callback_, nullptr)(status_);
  lock.lock();
  stage_ = CallbackStage::returned;
  changed_.notify_all();
}

}  // namespace tutti
