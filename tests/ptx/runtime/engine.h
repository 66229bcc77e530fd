// The thread that executes the tasks of all devices of the process.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "tests/ptx/runtime/task.h"

namespace tutti::cudart {

using Lock = std::unique_lock<std::mutex>;

// The functions require the lock of `mutex()`.
class Engine {
 public:
  std::mutex& mutex() { return mutex_; }

  // Adds a task that begins after the tasks `before` have finished, and `ahead` (may be null) has left the head of the
  // hardware queue.
  TaskPtr add(int device, std::unique_ptr<Work> work, std::span<const TaskPtr> before, const TaskPtr& ahead = nullptr);

  // Blocks until the claim holds. `what` names the caller; if the wait takes long, a line on stderr lists the running
  // kernels. The claim is evaluated with the lock, after tasks have finished.
  void await(Lock& lock, const std::string& what, const std::function<bool()>& claim);
  void await(Lock& lock, const std::string& what, const TaskPtr& task);

  // The host knows from now on that the task has ended. await() of a task does this itself.
  void observe(const Task& task);

  bool runs_kernel(int device) const;
  // Marks the device as faulty. Its tasks end without effect.
  void fail(int device);
  // Makes the thread call advance() of all works that have not finished. Requires no lock; takes it.
  void look_again();

 private:
  void begin();  // Starts the thread.
  void run();
  bool pass(Lock& lock);  // Returns true if a task has finished.
  bool polls() const;     // True if a running work must be polled.
  void ready(const TaskPtr& task);
  void leave_queue(Task& task);
  void satisfy(std::vector<TaskPtr>& tasks);
  void finish(const TaskPtr& task);
  void choose_chain(Task& task, std::span<const TaskPtr> before);
  std::string running_kernels() const;

  mutable std::mutex mutex_;
  std::condition_variable added_;    // Tasks were added.
  std::condition_variable changed_;  // Tasks have finished.
  std::vector<TaskPtr> running_;
  std::vector<bool> failed_;
  std::vector<std::uint32_t> chains_;  // Number of the last task of each chain.
  ptx::OperationClock host_;           // Tasks whose end the host knows.
  bool begun_ = false;
  bool looks_again_ = false;
};

// Never destroyed, because threads may outlive static objects.
Engine& engine();

// Time of events, in ns.
std::int64_t now_ns();

}  // namespace tutti::cudart
