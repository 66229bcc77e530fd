#pragma once
// A call of a process group as PyTorch's Work: it can be waited for, and has a future.

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "python/tutti/torch/native/call_queue.h"
#include "python/tutti/torch/native/communicator.h"
#include "python/tutti/torch/native/hooks.h"

namespace tutti_torch {

using Milliseconds = std::chrono::milliseconds;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;

// Returns a number that no Work of this process has had.
uint64_t new_completion_key();

// Type and value of a future with these outputs.
c10::TypePtr type_of(const TensorLists& outputs);
c10::IValue value_of(const TensorLists& outputs);

// The error of a wait whose limit has passed.
LibraryError not_completed_error(Milliseconds timeout, int rank);

// Properties of a call that its Work shows.
struct CallDescription {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* title = nullptr;  // Name in profiles. It must outlive the call.
  Tensors inputs;               // For profiles only; read at creation.
  TensorLists outputs;          // Result of the call, also kept alive by the Work.
  Milliseconds timeout{0};
  uint64_t sequence = 0;  // Number of collectives of the group so far, including this one.
  int rank = 0;
  bool is_message = false;
};

// Returns the error with the name and the number of the collective, as the flight recorder shows them, instead of the
// function of the C API. `sequence`: 0 for messages, which have no number. Without a title, as for internal calls,
// returns `error`.
LibraryError in_operation(const LibraryError& error, const char* title, uint64_t sequence);

class CallWork : public c10d::Work {
 public:
  // Makes the call on the communicator. Runs in any thread; throws if the call fails.
  using Body = std::function<void(const CallContext&)>;
  struct Owner {
    std::shared_ptr<Communicator> communicator;
    std::shared_ptr<CallQueue> queue;
    std::shared_ptr<Hooks> hooks;
  };

  CallWork(const CallDescription& description, Owner owner, Body body);

  // Makes the call and completes this work and its future. The queue calls either run() or refuse(), once. Neither
  // throws.
  void run();
  // Completes this work with `error`, without the call.
  void refuse(const LibraryError& error);
  int rank() const { return rank_; }
  bool done() const { return done_.load(std::memory_order_acquire); }

  bool isCompleted() override { return done(); }
  // Waits at most `timeout`; kNoTimeout: until the call is complete. A call that is not complete continues.
  bool wait(Milliseconds timeout = kNoTimeout) override;
  void abort() override;
  Tensors result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return sequence_; }
  Milliseconds getTimeout() const { return timeout_; }  // Virtual in newer PyTorch.
  float getDuration() const override { return duration_ms_; }
#if TUTTI_TORCH_VERSION >= 21500
  uint64_t getCompletionKey() const override { return key_; }
#endif

 private:
  std::exception_ptr call();
  bool is_complete_within(Milliseconds timeout);
  void complete(std::exception_ptr error);
  void mark(const c10::intrusive_ptr<c10::ivalue::Future>& future);

  Owner owner_;
  Body body_;
  TensorLists outputs_;
  const char* title_;
  Milliseconds timeout_;
  uint64_t sequence_;
  uint64_t key_;
  float duration_ms_ = 0;
  std::atomic<bool> done_{false};
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // Created by the first getFuture(). Guarded by mutex_.
};

}  // namespace tutti_torch
