// send, recv and all_to_all_v. An all_to_all_v is a send and a recv for each pair of ranks.
#include <string>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/communicator/group.h"
#include "src/communicator/host/message_operation.h"
#include "src/communicator/host/message_signature.h"

namespace tutti {
namespace {

constexpr std::uint16_t kUserTag = 0;
// Separates messages of all_to_all_v from messages of the user.
constexpr std::uint16_t kAllToAllTag = 1;

// Returns a plan of one step, which copies the input into the lane or the lane into the output.
Plan message_plan(const Call& call, Rank self) {
  Plan plan;
  plan.shape = {.units = 1, .scratch = 0, .rounds = 1, .stages = {0}};
  plan.steps = Steps(self);
  if (call.kind == Kind::send) {
    plan.steps.send(input(0), call.root);
  } else {
    plan.steps.recv(call.root, output(0));
  }
  plan.rounds = {0, 1};
  return plan;
}

}  // namespace

MessageOperation::MessageOperation(HostCommunicator& owner, const Call& call, const MessageTerms& terms)
    : owner_(owner),
      call_(call),
      spec_(call.kind == Kind::send ? message_spec(owner.control_.membership.rank, call.root, terms.tag)
                                    : message_spec(call.root, owner.control_.membership.rank, terms.tag)),
      turns_(owner.turns_[{spec_, call.kind == Kind::send}]),
      turn_(turns_.taken++),
      timeout_ms_(terms.timeout_ms) {}

// An empty message is one slice without data. It is sent too, and its signature must match.
Result<bool> MessageOperation::open() {
  TUTTI_CHECK_OK(owner_.control_.membership.links.offer(spec_));
  const bool ready = TUTTI_TRY(owner_.control_.membership.links.ready(spec_));
  if (!ready) return false;
  const LaneEnd which = call_.kind == Kind::send ? LaneEnd::writer : LaneEnd::reader;
  compiled_ =
      std::make_unique<CompiledPlan>(message_plan(call_, owner_.control_.membership.rank), [&](const Operand&, bool) {
        return owner_.control_.membership.links.end(spec_, spec_.writer, spec_.tag, which);
      });
  launch_.self = {const_cast<std::byte*>(call_.input), call_.output};
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
  Result<bool> done = caught([this] { return go_on(); });
  if (!done.ok()) return owner_.control_.failures.reported(std::move(done).status());
  return done;
}

Result<bool> MessageOperation::go_on() {
  // An earlier message of the group uses the lane.
  if (turns_.served != turn_) return false;
  if (!interpreter_) {
    const bool opened = TUTTI_TRY(open());
    if (!opened) return false;
  }
  if (owner_.control_.membership.spans_hosts) owner_.control_.membership.mesh.advance();
  const Cursor before = interpreter_->cursor();
  const Progress progress = interpreter_->advance();
  if (!(interpreter_->cursor() == before)) wait_state_ = {};
  if (progress == Progress::mismatch) return owner_.control_.failures.fail(disagree());
  if (progress != Progress::done || !owner_.waiter_.drained()) return false;
  ++turns_.served;
  return true;
}

Status MessageOperation::wait() {
  owner_.control_.current.begin_wait(call_, timeout_ms_);
  Status status = owner_.waiter_.wait_for(call_.root, wait_state_);
  owner_.control_.current.end_wait();
  return status;
}

Status MessageOperation::disagree() const {
  const LaneState& lane = *owner_.control_.membership.links.end(spec_, spec_.writer, spec_.tag, LaneEnd::reader);
  const std::uint32_t signature = load_relaxed(&lane.view.words->signatures[lane.next % kMaxSlots]);
  const std::string self = "rank " + std::to_string(owner_.control_.membership.rank);
  const std::string peer = "rank " + std::to_string(call_.root);
  if (spec_.tag == kAllToAllTag) {
    return invalid_usage("in all_to_all_v" + owner_.control_.membership.name() + " " + self + " receives " +
                         describe_elements(call_.count, call_.type) + " from " + peer + ", but " + peer + " sends it " +
                         describe_elements(signature));
  }
  return invalid_usage(self + " called " + describe_message(call_) + ", but " + peer + " called " +
                       describe_send(signature, owner_.control_.membership.rank) + owner_.control_.membership.name());
}

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
Status HostCommunicator::find_lost_messages() {
  for (const auto& [end, turns] : turns_) {
    const auto& [spec, sends] = end;
    const LaneState* lane =
        control_.membership.links.end(spec, spec.writer, spec.tag, sends ? LaneEnd::writer : LaneEnd::reader);
    if (lane == nullptr) continue;
    const Lost lost = lost_in(lane->view);
    if (lost.messages > 0)
      return lost_message(spec, lost, sends ? turns.served - lost.messages : turns.served, membership().name());
  }
  // A rank may have messages from other hosts without ever having called recv for them. Within a host, nothing can be
  // sent before the reader has created the lane.
  for (const Rank peer : control_.membership.mesh.remote_ranks()) {
    const LaneSpec spec = message_spec(peer, membership().rank, kUserTag);
    const auto lane = control_.membership.mesh.connection(peer).find(control_.membership.mesh.context(peer), spec);
    if (!lane || turns_.contains({spec, false})) continue;
    const Lost lost = lost_in(*lane);
    if (lost.messages > 0) return lost_message(spec, lost, 0, membership().name());
  }
  return {};
}

// Peers see the call like any collective. Each pair of ranks checks its own counts.
void HostCommunicator::announce_unequal(const Call& call, std::int64_t timeout_ms) {
  unequal_record_.signature = unequal_signature(call.type);
  unequal_record_.collective = kUnequalCollective;
  unequal_record_.type = static_cast<std::uint8_t>(call.type);
  control_.current.begin(unequal_record_, timeout_ms);
  membership().board.announce(membership().rank, unequal_record_);
}

Result<std::unique_ptr<Operation>> HostCommunicator::start_messages(const Call& call, std::int64_t timeout_ms) {
  const MessageTerms terms = {.tag = call.kind == Kind::all_to_all_v ? kAllToAllTag : kUserTag,
                              .timeout_ms = timeout_ms};
  if (call.kind != Kind::all_to_all_v) {
    control_.current.begin_unrecorded(timeout_ms);
    return std::unique_ptr<Operation>(std::make_unique<MessageOperation>(*this, call, terms));
  }
  announce_unequal(call, timeout_ms);
  const Unequal& unequal = *call.unequal;
  const std::size_t element = size_of(call.type);
  std::vector<std::unique_ptr<Operation>> operations;
  // Each rank begins with a different peer.
  for (Rank offset = 0; offset < membership().ranks; ++offset) {
    Call message = call;
    message.kind = Kind::send;
    message.root = (membership().rank + offset) % membership().ranks;
    message.count = unequal.send_counts[message.root];
    message.input = call.input + unequal.send_displacements[message.root] * element;
    operations.push_back(std::make_unique<MessageOperation>(*this, message, terms));
    message.kind = Kind::recv;
    message.root = (membership().rank + membership().ranks - offset) % membership().ranks;
    message.count = unequal.recv_counts[message.root];
    message.output = call.output + unequal.recv_displacements[message.root] * element;
    operations.push_back(std::make_unique<MessageOperation>(*this, message, terms));
  }
  return std::unique_ptr<Operation>(std::make_unique<Together>(std::move(operations)));
}

}  // namespace tutti
