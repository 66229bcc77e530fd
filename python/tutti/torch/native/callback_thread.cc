#include "python/tutti/torch/native/callback_thread.h"

#include <c10/util/Exception.h>
#include <pthread.h>
#include <unistd.h>

#include <system_error>
#include <utility>

namespace tutti_torch {
namespace {

void run_callback(CallbackThread::Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    TORCH_WARN("a callback of a process group failed: ", error.what());
  } catch (...) {
    TORCH_WARN("a callback of a process group failed with an unknown exception");
  }
}

}  // namespace

CallbackThread::CallbackThread() : process_(getpid()) {}

CallbackThread::~CallbackThread() {
  if (thread_.joinable()) thread_.detach();  // It is this thread, or this is a child of fork().
}

void CallbackThread::post(Function function) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (stopped_ || !start_thread()) {
    lock.unlock();
    run_callback(std::move(function));
    return;
  }
  pending_.push_back(std::move(function));
  lock.unlock();
  changed_.notify_one();
}

// Starts the thread unless it runs. Returns false if the system has no thread left.
bool CallbackThread::start_thread() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::thread([self = shared_from_this()] { self->work(); });
  } catch (const std::system_error&) {
    return false;
  }
  worker_ = thread_.get_id();
  return true;
}

void CallbackThread::stop() {
  if (process_ != getpid()) return;
  std::unique_lock<std::mutex> lock(mutex_);
  stopped_ = true;
  if (worker_ == std::this_thread::get_id()) return;
  changed_.notify_all();
  changed_.wait(lock, [this] { return worker_ == std::thread::id(); });
  std::thread ending = std::move(thread_);
  lock.unlock();
  if (ending.joinable()) ending.join();
}

void CallbackThread::work() {
  pthread_setname_np(pthread_self(), "tutti_callbacks");
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !pending_.empty(); });
    if (pending_.empty()) break;
    Function function = std::move(pending_.front());
    pending_.pop_front();
    lock.unlock();
    run_callback(std::move(function));  // May free tensors, so not under the lock.
    lock.lock();
  }
  worker_ = {};
  changed_.notify_all();
}

}  // namespace tutti_torch
