#include "src/communicator/call/all_to_all_v.h"

namespace tutti {

std::vector<Call> messages_of(const Call& call, Rank self) {
  const Unequal& unequal = *call.unequal;
  const std::size_t element = size_of(call.type);
  const auto ranks = static_cast<Rank>(unequal.send_counts.size());
  std::vector<Call> messages;
  messages.reserve(2 * std::size_t{ranks});
  Call message = call;
  message.unequal = nullptr;
  for (Rank offset = 0; offset < ranks; ++offset) {
    message.kind = Kind::send;
    message.root = (self + offset) % ranks;
    message.count = unequal.send_counts[message.root];
    message.input = call.input + unequal.send_displacements[message.root] * element;
    messages.push_back(message);
    message.kind = Kind::recv;
    message.root = (self + ranks - offset) % ranks;
    message.count = unequal.recv_counts[message.root];
    message.output = call.output + unequal.recv_displacements[message.root] * element;
    messages.push_back(message);
  }
  return messages;
}

}  // namespace tutti
