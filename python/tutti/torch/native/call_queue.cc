#include "python/tutti/torch/native/call_queue.h"

#include <pthread.h>
#include <unistd.h>

#include <system_error>

#include "python/tutti/torch/native/work.h"

namespace tutti_torch {
namespace {

LibraryError no_thread_error(const std::system_error& error, int rank) {
  return LibraryError(tutti_system_error,
                      c10::str("the process group cannot start its thread for calls: ", error.what(),
                               "; increase the limit of processes (ulimit -u), or end other threads"),
                      rank);
}

}  // namespace

CallQueue::CallQueue() : process_(getpid()) {}

CallQueue::~CallQueue() {
  if (thread_.joinable()) thread_.detach();  // It is this thread, or this is a child of fork().
}

void CallQueue::submit(const CallPtr& call, Mode mode) {
  ++incomplete_;
  Lock lock(mutex_);
  if (running_ && runner_ == std::this_thread::get_id()) {
    lock.unlock();
    call->run();
    return;
  }
  if (stopped_) {
    lock.unlock();
    call->refuse(shut_down_error(call->rank()));
    return;
  }
  if (!running_ && pending_.empty() && mode == Mode::kBlocking) {
    running_ = true;
    runner_ = std::this_thread::get_id();
    lock.unlock();
    call->run();
    lock.lock();
    release(lock);
    return;
  }
  try {
    if (!thread_.joinable()) thread_ = std::thread([self = shared_from_this()] { self->work(); });
  } catch (const std::system_error& error) {
    lock.unlock();
    call->refuse(no_thread_error(error, call->rank()));
    return;
  }
  pending_.push_back(call);
  const bool must_wake = !running_;
  lock.unlock();
  if (must_wake) changed_.notify_all();
}

// Runs the first pending call. This thread is the runner.
void CallQueue::run_next(Lock& lock) {
  CallPtr call = std::move(pending_.front());
  pending_.pop_front();
  lock.unlock();
  call->run();
  call.reset();  // May free tensors, so not under the lock.
  lock.lock();
}

void CallQueue::release(Lock& lock) {
  running_ = false;
  runner_ = {};
  const bool must_wake = !pending_.empty() || stopped_;
  lock.unlock();
  if (must_wake) changed_.notify_all();
}

void CallQueue::help(const CallWork& call) {
  Lock lock(mutex_);
  const bool nested = running_ && runner_ == std::this_thread::get_id();
  if (running_ && !nested) return;
  running_ = true;
  runner_ = std::this_thread::get_id();
  while (!call.done() && !pending_.empty()) run_next(lock);
  if (!nested) release(lock);
}

void CallQueue::stop() {
  if (process_ != getpid()) return;
  Lock lock(mutex_);
  stopped_ = true;
  if (running_ && runner_ == std::this_thread::get_id()) return;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !running_ && pending_.empty(); });
  std::thread ending = std::move(thread_);
  lock.unlock();
  if (ending.joinable()) ending.join();
}

void CallQueue::work() {
  pthread_setname_np(pthread_self(), "tutti_torch");
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return !running_ && (stopped_ || !pending_.empty()); });
    if (pending_.empty()) return;
    running_ = true;
    runner_ = std::this_thread::get_id();
    while (!pending_.empty()) run_next(lock);
    release(lock);
    lock.lock();
  }
}

}  // namespace tutti_torch
