#include "src/messages/errors.h"

namespace tutti {
namespace {

std::string rank_name(Rank rank) { return "rank " + std::to_string(rank); }

}  // namespace

Status message_after_end(const std::string& name) {
  return invalid_usage("the communicator" + name + " has ended: start messages before you finalize or destroy it");
}

Status peer_has_left(Rank peer, const std::string& name) {
  const std::string who = peer == kAnyRank ? "all other ranks have" : rank_name(peer) + " has";
  return remote_error(who + " left the communicator" + name +
                      ": complete all messages with a rank before it finalizes or destroys the communicator");
}

Status incomplete_at_end(const MessageCall& call, const std::string& name) {
  return invalid_usage(describe(call) + " was not complete when the communicator" + name +
                       " ended: wait for requests before you finalize or destroy it");
}

Status calls_differ(const MessageCall& receive, const MessageCall& send, const std::string& name) {
  return invalid_usage(rank_name(send.peer) + " called " + describe(receive) + ", but " + rank_name(receive.peer) +
                       " called " + describe(send) + name + ": counts and types must be equal");
}

}  // namespace tutti
