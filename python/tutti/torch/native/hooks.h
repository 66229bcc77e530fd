#pragma once
// PyTorch's hooks at the end of operations of a process group, for its flight recorder. PyTorch before 2.15 has none.

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "python/tutti/torch/native/callback_thread.h"

namespace tutti_torch {

// Functions by their ids. Thread-safe.
template <typename Function>
class HookTable {
 public:
  void add(int64_t id, Function function) {
    std::lock_guard<std::mutex> lock(mutex_);
    by_id_[id] = std::move(function);
    count_ = by_id_.size();
  }

  void remove(int64_t id) {
    std::lock_guard<std::mutex> lock(mutex_);
    by_id_.erase(id);
    count_ = by_id_.size();
  }

  bool empty() const { return count_ == 0; }

  std::vector<Function> functions() {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Function> result;
    for (const auto& [id, function] : by_id_) result.push_back(function);
    return result;
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, Function> by_id_;
  std::atomic<size_t> count_{0};
};

// Calls hooks. Their exceptions must not change the outcome of the operation.
template <typename Function, typename... Arguments>
void call_all(const std::vector<Function>& functions, const Arguments&... arguments) {
  for (const Function& function : functions) {
    try {
      function(arguments...);
    } catch (const std::exception& error) {
      TORCH_WARN("a hook of the process group failed: ", error.what());
    }
  }
}

// Held by a std::shared_ptr. stop() must precede the release of the last pointer.
class Hooks : public std::enable_shared_from_this<Hooks> {
 public:
#if TUTTI_TORCH_VERSION >= 21500
  HookTable<c10d::CompletionHook> completion;  // Called after each operation that succeeded.
  HookTable<c10d::AbortHook> abort;            // Called after a failure of the group, and before the program aborts it.
  bool watch_completion() const { return !completion.empty(); }
  void call_completion(uint64_t key, float duration_ms) {
    if (watch_completion()) call_all(completion.functions(), c10d::CompletionHookArgs{key, duration_ms});
  }
  void call_abort() { call_all(abort.functions()); }
  // Calls the hooks in a thread, unless they run already. The flight recorder may need many seconds for its trace, and
  // must not delay the failure.
  void start_abort() {
    if (abort.empty() || aborting_.exchange(true)) return;
    thread_->post([self = shared_from_this(), functions = abort.functions()] {
      call_all(functions);
      self->aborting_ = false;
    });
  }
#else
  bool watch_completion() const { return false; }
  void call_completion(uint64_t /*key*/, float /*duration_ms*/) {}
  void call_abort() {}
  void start_abort() {}
#endif
  // Runs a function that calls hooks in their thread.
  void post(CallbackThread::Function function) { thread_->post(std::move(function)); }
  // Waits for hooks that run; see CallbackThread::stop().
  void stop() { thread_->stop(); }

 private:
  std::shared_ptr<CallbackThread> thread_ = std::make_shared<CallbackThread>();
  std::atomic<bool> aborting_{false};
};

}  // namespace tutti_torch
