// The call that a rank runs, as waits and error messages need it: its record, its time limit, and its description.
// Numbers the collectives of the rank.
#pragma once

#include <cstdint>
#include <string>

#include "src/communicator/call/call.h"
#include "src/communicator/call/message_signature.h"
#include "src/communicator/control/board.h"
#include "src/communicator/membership/membership.h"

namespace tutti {

// Only the thread that runs calls may use it.
class CurrentCall {
 public:
  explicit CurrentCall(const Membership& membership)
      : membership_(membership), timeout_ms_(membership.options.timeout_ms) {}

  // Gives the next number to a collective.
  void number(CallRecord& record) { record.sequence = ++sequence_; }
  // Begins a collective and numbers it. `record` must stay valid until the next call begins.
  void begin(CallRecord& record, std::int64_t timeout_ms) {
    number(record);
    record_ = &record;
    timeout_ms_ = timeout_ms;
  }
  // Begins messages or a finalize. They have no record.
  void begin_unrecorded(std::int64_t timeout_ms) {
    record_ = nullptr;
    timeout_ms_ = timeout_ms;
  }
  // begin_wait() and end_wait() enclose a wait in a send or recv. `message` must stay valid between them.
  void begin_wait(const Call& message, std::int64_t timeout_ms) {
    message_ = &message;
    timeout_ms_ = timeout_ms;
  }
  void end_wait() { message_ = nullptr; }

  const CallRecord* record() const { return record_; }  // Null: the rank runs no collective.
  const Call* message() const { return message_; }      // The send or recv that waits; null: none.
  bool finalizes() const { return record_ == nullptr && message_ == nullptr; }
  std::int64_t timeout_ms() const { return timeout_ms_; }  // 0 or less: no limit.
  std::uint64_t sequence() const { return sequence_; }     // Number of collectives so far.
  std::string describe() const;                            // Example: "all_reduce(1024 float32, sum) #7 on gradients".

 private:
  const Membership& membership_;
  const CallRecord* record_ = nullptr;
  const Call* message_ = nullptr;
  std::int64_t timeout_ms_;
  std::uint64_t sequence_ = 0;
};

inline std::string CurrentCall::describe() const {
  if (!finalizes()) {
    const std::string call = record_ != nullptr ? tutti::describe(*record_) + " #" + std::to_string(record_->sequence)
                                                : describe_message(*message_);
    return call + membership_.name();
  }
  // Ranks may wait in different communicators, so the message identifies even one without a name.
  if (!membership_.options.name.empty()) return "finalize" + membership_.name();
  return "finalize of an unnamed communicator of " + std::to_string(membership_.ranks) + " ranks";
}

}  // namespace tutti
