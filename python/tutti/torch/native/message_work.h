#pragma once
// A send or receive as PyTorch's Work.

#include "python/tutti/torch/native/callback_thread.h"
#include "python/tutti/torch/native/elements.h"
#include "python/tutti/torch/native/work.h"

namespace tutti_torch {

// A request of the C API with its buffer.
struct Message {
  Dense buffer;
  tutti_request request = nullptr;
  std::shared_ptr<Communicator> communicator;

  explicit Message(Dense dense) : buffer(std::move(dense)) {}
  // Cancels the request if it is not complete.
  ~Message();
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  // Cancels the request and destroys it. Returns false, and changes nothing, in a completion function while data of the
  // request move: the buffer must then stay alive.
  bool cancel();
  bool is_complete() const { return tutti_request_wait(request, 0, nullptr) != tutti_in_progress; }
};
using MessagePtr = std::shared_ptr<Message>;

class MessageWork : public c10d::Work {
 public:
  struct Owner {
    std::shared_ptr<CallbackThread> callbacks;  // Runs callbacks of the future, and frees messages.
    std::shared_ptr<Hooks> hooks;
  };

  MessageWork(const CallDescription& description, Owner owner, MessagePtr message);
  // Cancels a receive. A send continues: its buffer is freed when it is complete.
  ~MessageWork() override;

  // Lets the library report the completion, which the Work otherwise notices in its functions only.
  static void watch(const c10::intrusive_ptr<MessageWork>& work);

  bool isCompleted() override;
  // Waits at most `timeout`, or the time limit of the description if that is kNoTimeout. A message that is not complete
  // continues.
  bool wait(Milliseconds timeout = kNoTimeout) override;
  void abort() override;
  int sourceRank() const override { return source_; }
  Tensors result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  uint64_t getSequencenumber() const override { return sequence_; }
  Milliseconds getTimeout() const { return timeout_; }  // Virtual in newer PyTorch.
#if TUTTI_TORCH_VERSION >= 21500
  uint64_t getCompletionKey() const override { return key_; }
#endif

 private:
  const char* operation() const { return is_receive_ ? "tutti_recv" : "tutti_send"; }
  bool advance(int64_t timeout_ms);
  std::exception_ptr finish_buffer();
  void complete(std::exception_ptr error);

  Owner owner_;
  MessagePtr message_;
  Tensors outputs_;
  Milliseconds timeout_;
  uint64_t sequence_;
  uint64_t key_;
  std::atomic<int> source_{-1};
  bool is_receive_;
  bool watched_ = false;  // Guarded by mutex_, as future_.
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace tutti_torch
