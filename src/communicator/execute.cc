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
  if (prepared->interpreter && prepared->mapped_algorithm == nullptr) {  // The usual case: nothing to find out.
    announce(*prepared, call);
    bind_buffers(*prepared, *prepared, call);
    return complete(*prepared);
  }
  CollectiveOperation operation(*this, *prepared, call);
  return operation.complete();
}

Result<std::unique_ptr<Operation>> HostCommunicator::start(const Call& call, const CommunicatorOptions* options) {
  const CommunicatorOptions& chosen = options == nullptr ? options_ : *options;
  if (board_.failed()) return board_.failure(rank_);
  if (call.kind != Kind::collective) return start_messages(call);
  Prepared* prepared = TUTTI_TRY(prepare_call(call, chosen));
  return std::unique_ptr<Operation>(std::make_unique<CollectiveOperation>(*this, *prepared, call));
}

void HostCommunicator::announce(Prepared& prepared, const Call& call) {
  CallRecord& record = prepared.record;
  record.sequence = ++sequence_;
  record_ = &record;
  if (crowded_) show_cpu();
  if (prepared.mapped_algorithm != nullptr) show_buffers(prepared, call);
  board_.announce(rank_, record);
}

void HostCommunicator::bind_buffers(const Prepared& announced, Prepared& chosen, const Call& call) {
  Launch& launch = chosen.launch;
  // A message left over from another call must not pass for one of this.
  launch.signature.word =
      announced.record.signature + static_cast<std::uint32_t>(announced.record.sequence) * 0x9e3779b1U;
  launch.self = {const_cast<std::byte*>(call.input), call.output};
  if (chosen.copy_input) launch.self.input = copy_of(call.input, chosen.input_bytes);
  if (chosen.scratch_bytes > 0) launch.scratch = scratch(chosen.scratch_bytes);
  chosen.interpreter->machine().scale(call.scalar, call.integer_scalar);
  chosen.interpreter->start();
}

// Alone in its thread, it polls just what it waits for.
Status HostCommunicator::complete(Prepared& prepared) {
  Patience patience;
  for (;;) {
    const Progress progress = prepared.interpreter->advance();
    if (progress == Progress::done) return {};
    const Rank peer = prepared.interpreter->blocked().peer;
    if (progress == Progress::mismatch) return mismatch_with(peer);
    while (!prepared.interpreter->unblocked()) {
      if (!crowded_ && ++patience.polls % kPollsPerLook != 0) {
        pause();
        pause();  // Two let the peer's store through soonest.
        continue;
      }
      TUTTI_CHECK_OK(crowded_ ? wait_for(peer, patience) : look_around(peer, patience));
    }
  }
}

void HostCommunicator::show_cpu() {
  const auto cpu = static_cast<std::uint32_t>(::sched_getcpu());
  std::uint32_t& shown = board_.entry(rank_).cpu;
  if (load_relaxed(&shown) != cpu) store_relaxed(&shown, cpu);
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
  show_cpu();  // It may have changed while waiting.
  if (!crowded_ && load_relaxed(&board_.entry(peer).cpu) == load_relaxed(&board_.entry(rank_).cpu)) ::sched_yield();
  if (options_.timeout_ms > 0 && now - patience.began_ns > options_.timeout_ms * 1'000'000) {
    return fail(timeout_error(current_call() + " waited " + std::to_string(options_.timeout_ms) + " ms for rank " +
                              std::to_string(peer)));
  }
  TUTTI_CHECK_OK(compare_calls());
  if (now - patience.probed_ns < kProbeNs) return {};
  patience.probed_ns = now;
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
    const auto theirs = board_.call(peer, record_->sequence);
    if (theirs && theirs->signature != record_->signature) return mismatch(peer, *theirs);
  }
  return {};
}

Status HostCommunicator::mismatch(Rank peer, const CallRecord& theirs) {
  return fail(invalid_usage("ranks disagree on collective " + std::to_string(record_->sequence) + ": rank " +
                            std::to_string(rank_) + " called " + describe(*record_) + ", rank " + std::to_string(peer) +
                            " called " + describe(theirs)));
}

// What arrived from `peer` carries another signature. Its record is there unless it is far ahead.
Status HostCommunicator::mismatch_with(Rank peer) {
  TUTTI_CHECK_OK(compare_calls());
  return fail(invalid_usage("ranks disagree on collective " + std::to_string(record_->sequence) + ": rank " +
                            std::to_string(rank_) + " is in " + current_call() + ", and what rank " +
                            std::to_string(peer) + " sent belongs to another call"));
}

Status HostCommunicator::fail(Status status) {
  board_.fail(rank_, status);
  while (!board_.failed()) pause();  // Another rank may have been first, and is writing its words.
  return board_.failure(rank_);
}

std::string HostCommunicator::current_call() const {
  std::string text =
      record_ == nullptr ? std::string("send or recv") : describe(*record_) + " #" + std::to_string(record_->sequence);
  if (!options_.name.empty()) text += " on " + options_.name;
  return text;
}

}  // namespace tutti
