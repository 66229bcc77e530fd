#include "src/communicator/waiting/current_call.h"

#include "src/communicator/planning/message_signature.h"
#include "src/communicator/waiting/membership.h"

namespace tutti {

CurrentCall::CurrentCall(const Membership& membership)
    : membership_(membership), timeout_ms_(membership.options.timeout_ms) {}

std::string CurrentCall::describe() const {
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
