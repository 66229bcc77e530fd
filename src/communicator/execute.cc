// Running prepared calls, and waiting: every wait watches the abort word, the deadline, the peers' lives, and whether
// the peers are in the same call.
#include <sched.h>

#include <string>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/communicator/collective_operation.h"
#include "src/communicator/group.h"
#include "src/communicator/host_communicator.h"

namespace tutti {
namespace {

constexpr std::uint32_t kPollsPerLook = 1024;
constexpr std::uint32_t kPollsBeforeYield = 50;
constexpr std::int64_t kProbeNs = 5'000'000;  // Between looks at the peers' sockets.

}  // namespace

Status HostCommunicator::run(const Call& call, const CommunicatorOptions* options) {
  const CommunicatorOptions& chosen = options == nullptr ? options_ : *options;
  if (board_.failed()) return board_.failure(rank_);
  if (call.kind != Kind::collective) {
    std::vector<std::unique_ptr<Operation>> messages;
    messages.push_back(TUTTI_TRY(start_messages(call)));
    return drive(messages);
  }
  Prepared* prepared = latest_;
  if (prepared == nullptr || !(prepared->key == key_of(call, chosen))) {
    prepared = TUTTI_TRY(prepare_call(call, chosen));
  }
  CollectiveOperation operation(*this, *prepared, call, memory_);
  for (;;) {
    if (TUTTI_TRY(operation.advance())) return {};
    TUTTI_CHECK_OK(operation.wait());
  }
}

Result<std::unique_ptr<Operation>> HostCommunicator::start(const Call& call, const CommunicatorOptions* options) {
  const CommunicatorOptions& chosen = options == nullptr ? options_ : *options;
  if (board_.failed()) return board_.failure(rank_);
  if (call.kind != Kind::collective) return start_messages(call);
  Prepared* prepared = TUTTI_TRY(prepare_call(call, chosen));
  return std::unique_ptr<Operation>(std::make_unique<CollectiveOperation>(*this, *prepared, call));
}

Status HostCommunicator::wait_for(Rank peer, Patience& patience) {
  ++patience.polls;
  if (crowded_) {
    const bool same_cpu = load_relaxed(&board_.entry(peer).cpu) == load_relaxed(&board_.entry(rank_).cpu);
    if (same_cpu || patience.polls % kPollsBeforeYield == 0) {
      ::sched_yield();
    } else {
      pause();
    }
  } else {
    pause();
    pause();
  }
  return patience.polls % kPollsPerLook == 0 ? look_around(peer, patience) : Status();
}

Status HostCommunicator::look_around(Rank peer, Patience& patience) {
  if (board_.failed()) return board_.failure(rank_);
  const std::int64_t now = now_ns();
  if (patience.began_ns == 0) patience.began_ns = patience.probed_ns = now;
  if (!crowded_ && load_relaxed(&board_.entry(peer).cpu) == static_cast<std::uint32_t>(::sched_getcpu())) ::sched_yield();
  if (options_.timeout_ms > 0 && now - patience.began_ns > options_.timeout_ms * 1'000'000) {
    return fail(timeout_error(current_call() + " waited " + std::to_string(options_.timeout_ms) + " ms for rank " +
                              std::to_string(peer)));
  }
  TUTTI_CHECK_OK(compare_calls());
  if (now - patience.probed_ns < kProbeNs) return {};
  patience.probed_ns = now;
  // The CPU a rank runs on may have changed while it waits.
  store_relaxed(&board_.entry(rank_).cpu, static_cast<std::uint32_t>(::sched_getcpu()));
  return probe_peers();
}

Status HostCommunicator::probe_peers() {
  const auto dead = mesh_.find_dead();
  if (!dead) return {};
  return fail(remote_error("rank " + std::to_string(*dead) + " died during " + current_call()));
}

Status HostCommunicator::compare_calls() {
  if (record_ == nullptr) return {};
  for (Rank peer = 0; peer < ranks_; ++peer) {
    const auto theirs = board_.call(peer, sequence_);
    if (theirs && theirs->signature != record_->signature) return mismatch(peer, *theirs);
  }
  return {};
}

Status HostCommunicator::mismatch(Rank peer, const CallRecord& theirs) {
  return fail(invalid_usage("ranks disagree on collective " + std::to_string(sequence_) + ": rank " +
                            std::to_string(rank_) + " called " + describe(*record_) + ", rank " + std::to_string(peer) +
                            " called " + describe(theirs)));
}

// What arrived from `peer` carries another signature. Its record is there unless it is far ahead.
Status HostCommunicator::mismatch_with(Rank peer) {
  TUTTI_CHECK_OK(compare_calls());
  return fail(invalid_usage("ranks disagree on collective " + std::to_string(sequence_) + ": rank " +
                            std::to_string(rank_) + " is in " + current_call() + ", and what rank " +
                            std::to_string(peer) + " sent belongs to another call"));
}

Status HostCommunicator::fail(Status status) {
  board_.fail(rank_, status);
  while (!board_.failed()) pause();  // Another rank may have been first, and is writing its words.
  return board_.failure(rank_);
}

std::string HostCommunicator::current_call() const {
  std::string text = record_ == nullptr ? std::string("send or recv") : describe(*record_);
  text += " #" + std::to_string(sequence_);
  if (!options_.name.empty()) text += " on " + options_.name;
  return text;
}

// ---- CollectiveOperation ----

CollectiveOperation::CollectiveOperation(HostCommunicator& owner, HostCommunicator::Prepared& prepared, const Call& call)
    : CollectiveOperation(owner, prepared, call, own_memory_) {}

CollectiveOperation::CollectiveOperation(HostCommunicator& owner, HostCommunicator::Prepared& prepared, const Call& call,
                                         MachineMemory& memory)
    : owner_(owner), launch_(prepared.launch) {
  launch_.self = {const_cast<std::byte*>(call.input), call.output};
  arguments_ = prepared.arguments;
  arguments_.scale = call.scalar;
  arguments_.integer_scale = call.integer_scalar;
  ++owner.sequence_;
  launch_.signature.word = prepared.record.signature + static_cast<std::uint32_t>(owner.sequence_) * 0x9e3779b1U;
  prepared.record.sequence = owner.sequence_;
  owner.record_ = &prepared.record;
  store_relaxed(&owner.board_.entry(owner.rank_).cpu, static_cast<std::uint32_t>(::sched_getcpu()));
  owner.board_.announce(owner.rank_, prepared.record);
  if (prepared.plan == nullptr) return;
  if (prepared.copy_input) launch_.self.input = owner.copy_of(call.input, prepared.input_bytes);
  launch_.scratch = owner.scratch(prepared.scratch_bytes);
  memory.reserve(prepared.plan->compiled->program().widest);
  interpreter_.emplace(prepared.plan->compiled->program(), launch_, CpuMachine(memory, prepared.fold, arguments_), memory.pointers());
}

Result<bool> CollectiveOperation::advance() {
  if (!interpreter_) return true;
  const Progress progress = interpreter_->advance();
  if (progress == Progress::done) return true;
  if (progress == Progress::mismatch) return owner_.mismatch_with(interpreter_->blocked().peer);
  return false;
}

Status CollectiveOperation::wait() { return owner_.wait_for(interpreter_->blocked().peer, patience_); }

}  // namespace tutti
