// Ranks of other hosts: what would be on the board is told them, and this rank carries its lanes to them itself, while
// it waits.
#include <cstring>
#include <string>

#include "src/base/atomic.h"
#include "src/base/clock.h"
#include "src/communicator/host_communicator.h"

namespace tutti {
namespace {

constexpr std::int64_t kSpinNs = 50'000;       // Before it sleeps between messages.
constexpr std::int64_t kTellNs = 200'000'000;  // Then it tells the others which call it waits in.
constexpr std::uint32_t kPollsPerClock = 16;

}  // namespace

void HostCommunicator::hear_news() {
  if (!far_) return;
  const std::unique_lock lock(hearing_, std::try_to_lock);
  if (!lock) return;
  while (const auto news = mesh_.hear()) {
    if (news->kind == NewsKind::failure) {
      board_.publish(news->payload);
      continue;
    }
    CallRecord record;
    if (news->payload.size() != sizeof record) continue;
    std::memcpy(&record, news->payload.data(), sizeof record);
    if (record.sequence > 0) board_.announce(news->peer, record);
    if (news->kind == NewsKind::leaving) store_release(&board_.entry(news->peer).left, 1U);
  }
}

void HostCommunicator::tell_failure() {
  if (far_ && board_.failed() && board_.found_by(rank_)) mesh_.tell(NewsKind::failure, board_.failure_record());
}

void HostCommunicator::tell_call(NewsKind kind) {
  CallRecord record;
  const std::uint64_t last = board_.last(rank_);
  if (last > 0) record = board_.call(rank_, last).value_or(record);
  mesh_.tell(kind, std::as_bytes(std::span(&record, 1)));
}

// Ranks of other hosts tell their calls when they wait long.
std::string HostCommunicator::unheard_of() const {
  if (record_ == nullptr || !far_) return "";
  std::string list;
  for (const Rank peer : mesh_.far_ranks()) {
    if (board_.last(peer) < record_->sequence) list += (list.empty() ? "" : ", ") + std::to_string(peer);
  }
  return list.empty() ? "" : "; of other hosts, these have not said that they are in it: " + list;
}

// It spins for as long as an answer usually takes, then sleeps until something comes from the one it waits for.
Status HostCommunicator::wait_far(Rank peer, Patience& patience) {
  mesh_.advance();
  if (patience.polls % kPollsPerClock != 0) return {};
  const std::int64_t now = now_ns();
  if (patience.yielded_ns == 0) patience.yielded_ns = now;
  if (now - patience.yielded_ns < kSpinNs) return {};
  if (mesh_.far(peer)) {
    mesh_.wait(peer, 1);
  } else {
    ::sched_yield();
  }
  return look_around(peer, patience);
}

void HostCommunicator::tell_of_long_wait(std::int64_t now, Patience& patience) {
  if (patience.told_call || now - patience.began_ns < kTellNs) return;
  patience.told_call = true;
  tell_call(NewsKind::call);
}

Status HostCommunicator::run_far(Prepared& prepared, Progress progress) {
  Interpreter<CpuMachine>& interpreter = *prepared.interpreter;
  for (; progress != Progress::done; progress = interpreter.advance()) {
    const Rank peer = interpreter.blocked().operand->peer;
    if (progress == Progress::mismatch) return mismatch_with(peer);
    Patience patience;
    while (!interpreter.blocked().over()) TUTTI_CHECK_OK(wait_for(peer, patience));
  }
  return drain();
}

bool HostCommunicator::drained() {
  if (!far_) return true;
  for (const Rank peer : mesh_.far_ranks()) {
    if (!mesh_.connection(peer).drained()) return false;
  }
  return true;
}

Status HostCommunicator::drain() {
  for (const Rank peer : mesh_.far_ranks()) {
    Patience patience;
    while (!mesh_.connection(peer).drained()) TUTTI_CHECK_OK(wait_for(peer, patience));
  }
  return {};
}

}  // namespace tutti
