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
    ended_.wait_for(lock, std::chrono::milliseconds(deadline.left_ms()));
  }
  return true;
}

Status MessageRequest::on_completion(Callback callback) {
  {
    const std::lock_guard lock(mutex_);
    if (has_callback_) return invalid_usage("the request has a completion function already: set it only once");
    has_callback_ = true;
    callback_ = std::move(callback);
    if (!complete_) return {};
  }
  run_callback();
  return {};
}

bool MessageRequest::end(Status status, const MessageInfo& info) {
  const std::lock_guard lock(mutex_);
  TUTTI_ASSERT(!complete_);
  status_ = std::move(status);
  info_ = info;
  complete_ = true;
  ended_.notify_all();
  return has_callback_;
}

void MessageRequest::run_callback() {
  const Callback callback = std::exchange(callback_, nullptr);
  callback(status_);
}

}  // namespace tutti
