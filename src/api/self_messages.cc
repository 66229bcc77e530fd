#include "src/api/self_messages.h"

#include <map>
#include <string>

namespace tutti {
namespace {

struct MessagesToSelf {
  std::uint64_t sent = 0, received = 0;
};

Status check_balance(const Communicator& communicator, const MessagesToSelf& messages) {
  if (messages.sent == messages.received) return {};
  return invalid_usage("in a group rank " + std::to_string(communicator.rank()) + " sends itself " +
                       std::to_string(messages.sent) + " messages and receives " + std::to_string(messages.received) +
                       ": put each send and its recv in one group, with no collective of the communicator between");
}

}  // namespace

Status check_messages_to_self(const std::vector<MadeCall>& calls) {
  std::map<const Communicator*, MessagesToSelf> messages;
  for (const auto& [communicator, call] : calls) {
    if (call->kind != Kind::send && call->kind != Kind::recv) {
      const auto before = messages.find(communicator);
      if (before != messages.end()) TUTTI_CHECK_OK(check_balance(*communicator, before->second));
    } else if (call->root == communicator->rank()) {
      MessagesToSelf& own = messages[communicator];
      ++(call->kind == Kind::send ? own.sent : own.received);
    }
  }
  for (const auto& [communicator, own] : messages) TUTTI_CHECK_OK(check_balance(*communicator, own));
  return {};
}

}  // namespace tutti
