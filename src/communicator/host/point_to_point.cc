// send, recv and all_to_all_v. An all_to_all_v is a send and a recv for each pair of ranks.
#include <algorithm>
#include <string>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/communicator/group.h"
#include "src/communicator/host/message_operation.h"

namespace tutti {
namespace {

constexpr std::uint16_t kUserTag = 0;
// Separates messages of all_to_all_v from messages of the user.
constexpr std::uint16_t kAllToAllTag = 1;

// Signature of a message. It describes the contents, so that the receiver can report both calls: 4 bits of type, then
// the count. For 2^27 elements or more, a bit and a hash of the count.
constexpr std::uint32_t kCountBits = 27;
constexpr std::uint32_t kManyElements = 1U << kCountBits;
static_assert(kDataTypes <= 16);

std::uint32_t message_signature(const Call& call) {
  const auto type = static_cast<std::uint32_t>(call.type) << (kCountBits + 1);
  if (call.count < kManyElements) return type | static_cast<std::uint32_t>(call.count);
  return type | kManyElements | static_cast<std::uint32_t>(call.count * 0x9e3779b97f4a7c15ULL >> (64 - kCountBits));
}

std::string elements(std::uint64_t count, DataType type) { return std::to_string(count) + " " + name(type); }

std::string elements(std::uint32_t signature) {
  const auto type = static_cast<DataType>(signature >> (kCountBits + 1));
  const bool many = (signature & kManyElements) != 0;
  if (static_cast<std::uint32_t>(type) >= kDataTypes) return "nothing known";
  return many ? "another count, of 2^27 or more " + std::string(name(type))
              : elements(signature & (kManyElements - 1), type);
}

// Equal on all ranks if the calls match, although counts differ.
std::uint32_t unequal_signature(DataType type) { return 0x5eed0a2aU + static_cast<std::uint32_t>(type); }

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

std::uint64_t slice_elements(std::uint32_t slot_bytes, std::uint64_t element_bytes) {
  return std::max<std::uint64_t>(slot_bytes / element_bytes / 2, 1);
}

// Returns the number of slots that a message fills, given only its signature. A message that the receiver has not begun
// to read fits the slots of its lane, so its signature contains the count.
std::uint64_t slices_of(std::uint32_t signature, std::uint32_t slot_bytes) {
  const std::uint32_t type = signature >> (kCountBits + 1);
  if (type >= kDataTypes) return 1;
  const std::uint64_t most = slice_elements(slot_bytes, size_of(static_cast<DataType>(type)));
  return std::max<std::uint64_t>(((signature & (kManyElements - 1)) + most - 1) / most, 1);
}

std::string described(Kind kind, const std::string& what, Rank peer) {
  const bool sends = kind == Kind::send;
  return (sends ? "send(" : "recv(") + what + (sends ? ", to rank " : ", from rank ") + std::to_string(peer) + ")";
}

}  // namespace

std::string describe_message(const Call& call) {
  return described(call.kind, elements(call.count, call.type), call.root);
}

MessageOperation::MessageOperation(HostCommunicator& owner, const Call& call, std::uint16_t tag)
    : owner_(owner),
      call_(call),
      spec_(call.kind == Kind::send ? message_spec(owner.rank_, call.root, tag)
                                    : message_spec(call.root, owner.rank_, tag)),
      turns_(owner.turns_[{spec_, call.kind == Kind::send}]),
      turn_(turns_.taken++),
      timeout_ms_(owner.timeout_ms_) {}

// An empty message is one slice without data. It is sent too, and its signature must match.
Result<bool> MessageOperation::open() {
  TUTTI_CHECK_OK(owner_.links_.offer(spec_));
  const bool ready = TUTTI_TRY(owner_.links_.ready(spec_));
  if (!ready) return false;
  const LaneEnd which = call_.kind == Kind::send ? LaneEnd::writer : LaneEnd::reader;
  compiled_ = std::make_unique<CompiledPlan>(message_plan(call_, owner_.rank_), [&](const Operand&, bool) {
    return owner_.links_.end(spec_, spec_.writer, spec_.tag, which);
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
  if (!done.ok()) return owner_.reported(std::move(done).status());
  return done;
}

Result<bool> MessageOperation::go_on() {
  // An earlier message of the group uses the lane.
  if (turns_.served != turn_) return false;
  if (!interpreter_) {
    const bool opened = TUTTI_TRY(open());
    if (!opened) return false;
  }
  if (owner_.spans_hosts_) owner_.mesh_.advance();
  const Cursor before = interpreter_->cursor();
  const Progress progress = interpreter_->advance();
  if (!(interpreter_->cursor() == before)) wait_state_ = {};
  if (progress == Progress::mismatch) return owner_.fail(disagree());
  if (progress != Progress::done || !owner_.drained()) return false;
  ++turns_.served;
  return true;
}

// `message_` is set only while wait_for() may report the wait.
Status MessageOperation::wait() {
  owner_.message_ = &call_;
  owner_.timeout_ms_ = timeout_ms_;
  Status status = owner_.wait_for(call_.root, wait_state_);
  owner_.message_ = nullptr;
  return status;
}

Status MessageOperation::disagree() const {
  const LaneState& lane = *owner_.links_.end(spec_, spec_.writer, spec_.tag, LaneEnd::reader);
  const std::string sent = elements(load_relaxed(&lane.view.words->signatures[lane.next % kMaxSlots]));
  const std::string self = "rank " + std::to_string(owner_.rank_);
  const std::string peer = "rank " + std::to_string(call_.root);
  if (spec_.tag == kAllToAllTag) {
    return invalid_usage("in all_to_all_v" + owner_.name() + " " + self + " receives " +
                         elements(call_.count, call_.type) + " from " + peer + ", but " + peer + " sends it " + sent);
  }
  return invalid_usage(self + " called " + describe_message(call_) + ", but " + peer + " called " +
                       described(Kind::send, sent, owner_.rank_) + owner_.name());
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
                       " before both left; the first is " + described(Kind::send, elements(lost.first), lane.reader));
}

}  // namespace

// No rank posts or takes messages any more, so both ends of a lane find the same result. The writer counts sent
// messages, the reader received ones.
Status HostCommunicator::find_lost_messages() {
  for (const auto& [end, turns] : turns_) {
    const auto& [spec, sends] = end;
    const LaneState* lane = links_.end(spec, spec.writer, spec.tag, sends ? LaneEnd::writer : LaneEnd::reader);
    if (lane == nullptr) continue;
    const Lost lost = lost_in(lane->view);
    if (lost.messages > 0) return lost_message(spec, lost, sends ? turns.served - lost.messages : turns.served, name());
  }
  // A rank may have messages from other hosts without ever having called recv for them. Within a host, nothing can be
  // sent before the reader has created the lane.
  for (const Rank peer : mesh_.remote_ranks()) {
    const LaneSpec spec = message_spec(peer, rank_, kUserTag);
    const auto lane = mesh_.connection(peer).find(mesh_.context(peer), spec);
    if (!lane || turns_.contains({spec, false})) continue;
    const Lost lost = lost_in(*lane);
    if (lost.messages > 0) return lost_message(spec, lost, 0, name());
  }
  return {};
}

// Peers see the call like any collective. Each pair of ranks checks its own counts.
void HostCommunicator::announce_unequal(const Call& call) {
  unequal_record_.sequence = ++sequence_;
  unequal_record_.signature = unequal_signature(call.type);
  unequal_record_.collective = kUnequalCollective;
  unequal_record_.type = static_cast<std::uint8_t>(call.type);
  record_ = &unequal_record_;
  board_.announce(rank_, unequal_record_);
}

Result<std::unique_ptr<Operation>> HostCommunicator::start_messages(const Call& call) {
  record_ = nullptr;
  if (call.kind != Kind::all_to_all_v)
    return std::unique_ptr<Operation>(std::make_unique<MessageOperation>(*this, call, kUserTag));
  announce_unequal(call);
  const Unequal& unequal = *call.unequal;
  const std::size_t element = size_of(call.type);
  std::vector<std::unique_ptr<Operation>> operations;
  // Each rank begins with a different peer.
  for (Rank offset = 0; offset < ranks_; ++offset) {
    Call message = call;
    message.kind = Kind::send;
    message.root = (rank_ + offset) % ranks_;
    message.count = unequal.send_counts[message.root];
    message.input = call.input + unequal.send_displacements[message.root] * element;
    operations.push_back(std::make_unique<MessageOperation>(*this, message, kAllToAllTag));
    message.kind = Kind::recv;
    message.root = (rank_ + ranks_ - offset) % ranks_;
    message.count = unequal.recv_counts[message.root];
    message.output = call.output + unequal.recv_displacements[message.root] * element;
    operations.push_back(std::make_unique<MessageOperation>(*this, message, kAllToAllTag));
  }
  return std::unique_ptr<Operation>(std::make_unique<Together>(std::move(operations)));
}

}  // namespace tutti
