// A send or receive in progress. It is complete when the message has been received, or its buffer may be reused.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "src/base/clock.h"
#include "src/base/rank.h"
#include "src/base/status.h"
#include "src/base/types.h"

namespace tutti {

inline constexpr Rank kAnyRank = ~Rank{0};

enum class MessageDirection : std::uint8_t { send, receive };

// Arguments of a send or receive.
struct MessageCall {
  MessageDirection direction = MessageDirection::send;
  Rank peer = 0;  // kAnyRank: a receive from any rank.
  std::uint64_t tag = 0;
  std::uint64_t count = 0;
  DataType type = DataType::uint8;
  std::byte* data = nullptr;  // A send only reads it.

  std::uint64_t bytes() const { return count * size_of(type); }
};

// A message as its receiver sees it.
struct MessageInfo {
  Rank peer = 0;
  std::uint64_t tag = 0;
  std::uint64_t count = 0;
};

std::string describe(const MessageCall& call);  // Example: "irecv(20 int32, from rank 0, tag 7)".

// Thread-safe.
class MessageRequest {
 public:
  using Callback = std::function<void(const Status&)>;

  explicit MessageRequest(const MessageCall& call) : call_(call) {}

  const MessageCall& call() const { return call_; }
  bool complete() const;
  // Waits until the request is complete or the deadline has passed. Returns whether it is complete.
  bool wait(const Deadline& deadline);
  // Must be called only after completion.
  Status status() const { return status_.copy(); }
  const MessageInfo& info() const { return info_; }

  // Calls `callback` once, after completion: at once if the request is complete, else from the service thread or from
  // retire(). Fails if the request has a callback already, or is retired.
  Status on_completion(Callback callback);
  // For the owner of a complete request. When it returns, the callback has returned and no callback will be called
  // again, unless the callback itself is the caller.
  void retire();
  // Like retire(), but does not wait. Returns false, and changes nothing, if another thread runs the callback.
  bool retire_at_once();

  // For the endpoint. end() completes the request and returns whether it has a callback.
  bool end(Status status, const MessageInfo& info);
  void run_callback();  // Calls the callback, unless it has been called.

 private:
  enum class CallbackStage : std::uint8_t { none, waiting, running, returned };
  using Lock = std::unique_lock<std::mutex>;

  bool runs_elsewhere() const;  // Requires the lock.
  void run_callback(Lock& lock);

  const MessageCall call_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // The request is complete, or its callback has returned.
  bool complete_ = false;
  bool retired_ = false;
  CallbackStage stage_ = CallbackStage::none;
  std::thread::id caller_;  // The thread that runs the callback.
  Status status_;
  MessageInfo info_;
  Callback callback_;
};

}  // namespace tutti
