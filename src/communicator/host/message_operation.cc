#include "src/communicator/host/message_operation.h"

#include <string>
#include <utility>

#include "src/base/atomic.h"
#include "src/base/caught.h"
#include "src/communicator/planning/lane_specs.h"
#include "src/communicator/planning/message_signature.h"

namespace tutti {
namespace {

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

LaneSpec lane_of_message(const Call& call, Rank self, std::uint16_t tag) {
  return call.kind == Kind::send ? message_spec(self, call.root, tag) : message_spec(call.root, self, tag);
}

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
  Links& links = control_.membership.links;
  TUTTI_CHECK_OK(links.offer(spec_));
  const bool ready = TUTTI_TRY(links.ready(spec_));
  if (!ready) return false;
  const LaneEnd which = call_.kind == Kind::send ? LaneEnd::writer : LaneEnd::reader;
  compiled_ = std::make_unique<CompiledPlan>(message_plan(call_, control_.membership.rank), [&](const Operand&, bool) {
    return links.end(spec_, spec_.writer, spec_.tag, which);
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
  if (!done.ok()) return control_.failures.reported(std::move(done).status());
  return done;
}

Result<bool> MessageOperation::go_on() {
  // An earlier message of the group uses the lane.
  if (order_.served != place_) return false;
  if (!interpreter_) {
    const bool opened = TUTTI_TRY(open());
    if (!opened) return false;
  }
  if (control_.membership.spans_hosts) control_.membership.mesh.advance();
  const Cursor before = interpreter_->cursor();
  const Progress progress = interpreter_->advance();
  if (!(interpreter_->cursor() == before)) {
    wait_state_ = {};
    waiter_.note_progress();
  }
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
  const LaneState& lane = *control_.membership.links.end(spec_, spec_.writer, spec_.tag, LaneEnd::reader);
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

}  // namespace tutti
