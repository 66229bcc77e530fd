#include "src/communicator/host/point_to_point.h"

#include <string>
#include <utility>
#include <vector>

#include "src/base/atomic.h"
#include "src/communicator/call/all_to_all_v.h"
#include "src/communicator/call/message_signature.h"
#include "src/communicator/planning/lane_specs.h"

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

LaneSpec lane_of_message(const Call& call, Rank self, std::uint16_t tag) {
  return call.kind == Kind::send ? message_spec(self, call.root, tag) : message_spec(call.root, self, tag);
}

}  // namespace

// ---- One message ----

MessageOperation::MessageOperation(ControlPlane& control, Waiter& waiter, MessageOrder& order, const Call& call,
                                   const MessageTerms& terms)
    : control_(control),
      waiter_(waiter),
      order_(order),
      call_(call),
      spec_(lane_of_message(call, control.membership.rank, terms.tag)),
      place_(order.taken++),
      timeout_ms_(terms.timeout_ms) {}

// An empty message is one slice without data. It is sent too, and its signature must match.
Result<bool> MessageOperation::open() {
  LaneConnections& lanes = control_.membership.lanes;
  TUTTI_CHECK_OK(lanes.offer(spec_));
  const bool ready = TUTTI_TRY(lanes.ready(spec_));
  if (!ready) return false;
  const LaneEnd which = call_.kind == Kind::send ? LaneEnd::writer : LaneEnd::reader;
  compiled_ = std::make_unique<CompiledPlan>(message_plan(call_, control_.membership.rank), [&](const Operand&, bool) {
    return lanes.end(spec_, spec_.writer, spec_.tag, which);
  });
  launch_.self = {.input = const_cast<std::byte*>(call_.input), .output = call_.output};
  launch_.element_bytes = static_cast<std::uint32_t>(size_of(call_.type));
  launch_.input.count = launch_.output.count = call_.count;
  launch_.slice_elements = slice_elements(spec_.slot_bytes, launch_.element_bytes);
  launch_.even_if_empty = true;
  launch_.signature.word = message_signature(call_);
  memory_.reserve(1);
  interpreter_.emplace(
      compiled_->program(), launch_,
      CpuBackend(memory_, find_fold(call_.type, Reduction::sum), {.cache_policy = cache_policy().of_copies()}),
      memory_.pointers());
  return true;
}

Result<bool> MessageOperation::advance() {
  return control_.failures.guarded([this] { return go_on(); });
}

Result<bool> MessageOperation::go_on() {
  // An earlier message of the group uses the lane.
  if (order_.served != place_) return false;
  if (!interpreter_) {
    const bool opened = TUTTI_TRY(open());
    if (!opened) return false;
  }
  const Progress progress = waiter_.advance(*interpreter_, wait_state_);
  if (progress == Progress::mismatch) return control_.failures.fail(disagree());
  if (progress != Progress::done || !waiter_.drained()) return false;
  ++order_.served;
  return true;
}

Status MessageOperation::wait() {
  control_.current.begin_wait(call_, timeout_ms_);
  Status status = waiter_.wait_for(call_.root, wait_state_);
  control_.current.end_wait();
  return status;
}

Status MessageOperation::disagree() const {
  const Membership& membership = control_.membership;
  const LaneState& lane = *control_.membership.lanes.end(spec_, spec_.writer, spec_.tag, LaneEnd::reader);
  const std::uint32_t signature = load_relaxed(&lane.view.words->signatures[lane.next % kMaxSlots]);
  const std::string self = "rank " + std::to_string(membership.rank);
  const std::string peer = "rank " + std::to_string(call_.root);
  if (spec_.tag == kAllToAllTag) {
    return invalid_usage("in all_to_all_v" + membership.name() + " " + self + " receives " +
                         describe_elements(call_.count, call_.type) + " from " + peer + ", but " + peer + " sends it " +
                         describe_elements(signature));
  }
  return invalid_usage(self + " called " + describe_message(call_) + ", but " + peer + " called " +
                       describe_send(signature, membership.rank) + membership.name());
}

// ---- All messages of a rank ----

// No rank posts or takes messages any more, so both ends of a lane find the same result. The writer counts sent
// messages, the reader received ones.
Status PointToPoint::find_lost() const {
  Membership& membership = control_.membership;
  for (const auto& [end, order] : orders_) {
    const auto& [spec, sends] = end;
    const LaneEnd which = sends ? LaneEnd::writer : LaneEnd::reader;
    const LaneState* lane = membership.lanes.end(spec, spec.writer, spec.tag, which);
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
  std::vector<std::unique_ptr<Operation>> operations;
  for (const Call& part : messages_of(call, control_.membership.rank)) operations.push_back(message(part, terms));
  return std::unique_ptr<Operation>(std::make_unique<Together>(std::move(operations)));
}

}  // namespace tutti
