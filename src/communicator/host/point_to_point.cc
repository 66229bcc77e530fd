#include "src/communicator/host/point_to_point.h"

#include <string>
#include <vector>

#include "src/base/atomic.h"
#include "src/communicator/call/operation.h"
#include "src/communicator/planning/lane_specs.h"
#include "src/communicator/planning/message_signature.h"

namespace tutti {
namespace {

// Several operations combined into one.
class Together final : public Operation {
 public:
  explicit Together(std::vector<std::unique_ptr<Operation>> operations) : operations_(std::move(operations)) {}
  Result<bool> advance() override {
    TUTTI_TRY(advance_all(operations_));
    return operations_.empty();
  }
  Status wait() override { return operations_.front()->wait(); }

 private:
  std::vector<std::unique_ptr<Operation>> operations_;
};

// Messages left in a lane after both ends have left.
struct Lost {
  std::uint64_t messages = 0;
  std::uint32_t first = 0;  // Signature of the first message.
};

Lost lost_in(const LaneView& lane) {
  const std::uint64_t posted = load_acquire(&lane.words->posted);
  Lost lost;
  for (std::uint64_t at = load_acquire(&lane.credits->taken); at < posted; ++lost.messages) {
    const std::uint32_t signature = load_relaxed(&lane.words->signatures[at % kMaxSlots]);
    if (lost.messages == 0) lost.first = signature;
    at += slices_of(signature, lane.slot_bytes);
  }
  return lost;
}

Status lost_message(const LaneSpec& lane, const Lost& lost, std::uint64_t received, const std::string& name) {
  const std::string writer = "rank " + std::to_string(lane.writer);
  const std::string reader = "rank " + std::to_string(lane.reader);
  return invalid_usage(reader + " did not receive " + std::to_string(lost.messages) + " of " +
                       std::to_string(received + lost.messages) + " messages from " + writer + name +
                       " before both left; the first is " + describe_send(lost.first, lane.reader));
}

}  // namespace

// No rank posts or takes messages any more, so both ends of a lane find the same result. The writer counts sent
// messages, the reader received ones.
Status PointToPoint::find_lost() const {
  Membership& membership = control_.membership;
  for (const auto& [end, order] : orders_) {
    const auto& [spec, sends] = end;
    const LaneEnd which = sends ? LaneEnd::writer : LaneEnd::reader;
    const LaneState* lane = membership.links.end(spec, spec.writer, spec.tag, which);
    if (lane == nullptr) continue;
    const Lost lost = lost_in(lane->view);
    const std::uint64_t received = sends ? order.served - lost.messages : order.served;
    if (lost.messages > 0) return lost_message(spec, lost, received, membership.name());
  }
  // A rank may have messages from other hosts without ever having called recv for them. Within a host, nothing can be
  // sent before the reader has created the lane.
  for (const Rank peer : membership.mesh.remote_ranks()) {
    const LaneSpec spec = message_spec(peer, membership.rank, kUserTag);
    const auto lane = membership.mesh.connection(peer).find(membership.mesh.context(peer), spec);
    if (!lane || orders_.contains({spec, false})) continue;
    const Lost lost = lost_in(*lane);
    if (lost.messages > 0) return lost_message(spec, lost, 0, membership.name());
  }
  return {};
}

void PointToPoint::announce_unequal(const Call& call, std::int64_t timeout_ms) {
  unequal_record_.signature = unequal_signature(call.type);
  unequal_record_.collective = kUnequalCollective;
  unequal_record_.type = static_cast<std::uint8_t>(call.type);
  control_.current.begin(unequal_record_, timeout_ms);
  control_.membership.board.announce(control_.membership.rank, unequal_record_);
}

std::unique_ptr<Operation> PointToPoint::message(const Call& call, const MessageTerms& terms) {
  const LaneSpec lane = lane_of_message(call, control_.membership.rank, terms.tag);
  MessageOrder& order = orders_[{lane, call.kind == Kind::send}];
  return std::make_unique<MessageOperation>(control_, waiter_, order, call, terms);
}

Result<std::unique_ptr<Operation>> PointToPoint::start(const Call& call, std::int64_t timeout_ms) {
  if (call.kind != Kind::all_to_all_v) {
    control_.current.begin_unrecorded(timeout_ms);
    return message(call, {.tag = kUserTag, .timeout_ms = timeout_ms});
  }
  announce_unequal(call, timeout_ms);
  const MessageTerms terms = {.tag = kAllToAllTag, .timeout_ms = timeout_ms};
  const Unequal& unequal = *call.unequal;
  const std::size_t element = size_of(call.type);
  const Rank self = control_.membership.rank;
  const Rank ranks = control_.membership.ranks;
  std::vector<std::unique_ptr<Operation>> operations;
  // Each rank begins with a different peer.
  for (Rank offset = 0; offset < ranks; ++offset) {
    Call part = call;
    part.kind = Kind::send;
    part.root = (self + offset) % ranks;
    part.count = unequal.send_counts[part.root];
    part.input = call.input + unequal.send_displacements[part.root] * element;
    operations.push_back(message(part, terms));
    part.kind = Kind::recv;
    part.root = (self + ranks - offset) % ranks;
    part.count = unequal.recv_counts[part.root];
    part.output = call.output + unequal.recv_displacements[part.root] * element;
    operations.push_back(message(part, terms));
  }
  return std::unique_ptr<Operation>(std::make_unique<Together>(std::move(operations)));
}

}  // namespace tutti
