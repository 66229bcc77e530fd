// Work of devices as a directed acyclic graph of tasks. Streams, events and graphs order tasks by dependencies; the
// engine thread runs a task once its predecessors have finished.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/ptx/machine/operations.h"

namespace tutti::cudart {

// An operation of a device: a copy, a kernel, a wait for a word.
class Work {
 public:
  virtual ~Work() = default;
  // Begins or continues the operation, without blocking. Returns true if it has finished. Called by the engine thread,
  // without the lock of the runtime.
  virtual bool advance() = 0;
  ptx::OperationOrder order;  // Set before the first advance().
  // True for kernels, which implicit synchronisation waits for.
  virtual bool is_kernel() const { return false; }
  // True if later work of the same hardware queue cannot begin before this one has ended.
  virtual bool holds_queue() const { return false; }
  // True if the operation waits for a word, so that only advance() can find out that it has ended; otherwise
  // Engine::look_again() announces the end.
  virtual bool polls() const { return false; }
  virtual std::string name() const = 0;  // For reports.
  // Ends the operation early after a fault of its device.
  virtual void abandon() {}
};

// Creates the operation for one execution; nodes of graphs execute several times.
using MakeWork = std::function<std::unique_ptr<Work>()>;

struct Task;
using TaskPtr = std::shared_ptr<Task>;

struct Task {
  int device = 0;
  std::unique_ptr<Work> work;   // Null: nothing to do.
  std::size_t missing = 0;      // Predecessors that this task still waits for.
  std::vector<TaskPtr> next;    // Tasks that wait for the end of this one.
  std::vector<TaskPtr> behind;  // Tasks that wait for this one to leave the head of its hardware queue.
  bool left_queue = false;
  bool done = false;
  std::int64_t done_ns = 0;
  ptx::OperationOrder order;       // `before` grows until the task begins. At the end it includes the task.
  std::function<void()> finished;  // Called at the end, with the runtime locked.
};

}  // namespace tutti::cudart
