// Work that the machine executes. The machine's thread announces its end.
#pragma once

#include <atomic>

#include "tests/ptx/machine/machine.h"
#include "tests/ptx/runtime/task.h"

namespace tutti::cudart {

class MachineWork : public Work {
 public:
  bool advance() final;

 protected:
  explicit MachineWork(int device) : device_(device) {}
  // Starts the operation. The machine calls `done` if there is no error.
  virtual Status start(ptx::Machine& machine, ptx::LaunchDone done) = 0;
  bool has_ended() const { return ended_->load(std::memory_order_acquire); }

 private:
  const int device_;
  const std::shared_ptr<std::atomic<bool>> ended_ = std::make_shared<std::atomic<bool>>(false);
  bool started_ = false;
};

}  // namespace tutti::cudart
