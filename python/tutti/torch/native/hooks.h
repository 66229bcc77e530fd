#pragma once
// PyTorch's hooks at the end of operations of a process group, for its flight recorder. PyTorch before 2.15 has none.

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

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

  // Calls the functions without the mutex of the table.
  template <typename... Arguments>
  void call(const Arguments&... arguments) {
    if (empty()) return;
    std::vector<Function> functions;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [id, function] : by_id_) functions.push_back(function);
    }
    for (const Function& function : functions) {
      try {
        function(arguments...);
      } catch (const std::exception& error) {  // It must not change the outcome of the call.
        TORCH_WARN("a hook of the process group failed: ", error.what());
      }
    }
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, Function> by_id_;
  std::atomic<size_t> count_{0};
};

struct Hooks {
#ifdef C10D_BACKEND_HAS_HOOKS
  HookTable<c10d::CompletionHook> completion;  // Called after each operation that succeeded.
  HookTable<c10d::AbortHook> abort;            // Called before a failure of the group is reported, possibly repeatedly.
  bool watch_completion() const { return !completion.empty(); }
  void call_completion(uint64_t key, float duration_ms) { completion.call(c10d::CompletionHookArgs{key, duration_ms}); }
  void call_abort() { abort.call(); }
#else
  bool watch_completion() const { return false; }
  void call_completion(uint64_t /*key*/, float /*duration_ms*/) {}
  void call_abort() {}
#endif
};

}  // namespace tutti_torch
