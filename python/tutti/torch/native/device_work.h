#pragma once
// A call in a stream of a GPU as PyTorch's Work. As with NCCL's process group, streams wait for it, and not the host.

#include <c10/core/Event.h>

#include "python/tutti/torch/native/work.h"

namespace tutti_torch {

// Thread-safe once it is recorded.
class DeviceWork : public c10d::Work {
 public:
  DeviceWork(const CallDescription& description, std::shared_ptr<Communicator> communicator);

  // Records the end of the call in `stream`. Called once, before other functions.
  void record(const c10::Stream& stream);
  const std::shared_ptr<c10::Event>& end() const { return end_; }

  // Returns true if the stream has reached the end of the call, and if the communicator has failed.
  bool isCompleted() override;
  bool isSuccess() const override { return failure() == nullptr; }
  // Returns the failure of the communicator, unless isCompleted() has seen the call succeed. Does not query the stream,
  // which may be captured.
  std::exception_ptr exception() const override;
  // Makes the current stream wait for the call. With a timeout, the host waits before, at most so long.
  bool wait(Milliseconds timeout = kNoTimeout) override;
  void synchronize() override;
  void abort() override { communicator_->abort(); }
  Tensors result() override;
  // Returns a completed future, for whose value streams wait.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return sequence_; }
  Milliseconds getTimeout() const { return timeout_; }  // Virtual in newer PyTorch.
  float getDuration() const override { return 0; }
  uint64_t key() const { return key_; }
#if TUTTI_TORCH_VERSION >= 21500
  uint64_t getCompletionKey() const override { return key_; }
#endif

 private:
  std::exception_ptr failure() const;  // Like exception(), but the program does not see the error.
  bool is_complete_within(Milliseconds timeout);

  std::shared_ptr<Communicator> communicator_;
  TensorLists outputs_;
  Milliseconds timeout_;
  uint64_t sequence_;
  uint64_t key_;
  std::shared_ptr<c10::Event> end_;
  c10::Device device_ = c10::kCPU;
  std::atomic<bool> succeeded_{false};
  c10::intrusive_ptr<c10::ivalue::Future> future_;  // Created by the first getFuture(). Guarded by mutex_.
};

using DeviceWorkPtr = c10::intrusive_ptr<DeviceWork>;

}  // namespace tutti_torch
