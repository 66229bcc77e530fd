#include "src/communicator/device/call_schedule.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace tutti {
namespace {

// Position of a call in its group. Calls of one wave run side by side, and both ranks of a message are in the same
// wave. Collectives are ordered by their position. Messages are ordered by their number between the two ranks, then by
// how far the receiver is ahead of the sender. A rank thus has one send and one recv per wave, which need two thread
// blocks. If its share of the device is one thread block, messages run one at a time, ordered by receiver as well. This
// order is the same on all ranks, so both ends of the first unfinished message have nothing before it.
using Wave = std::tuple<bool, std::uint32_t, Rank, Rank>;

class Waves {
 public:
  explicit Waves(std::span<const DeviceCall> calls) {
    for (const DeviceCall& call : calls) waves_[wave_of(call)].push_back(&call);
  }
  const std::map<Wave, std::vector<const DeviceCall*>>& all() const { return waves_; }

 private:
  Wave wave_of(const DeviceCall& entry) {
    const DeviceBackend& backend = entry.backend();
    if (!is_message(entry.call)) return {false, collectives_[&backend]++, 0, 0};
    const Rank self = backend.rank();
    const bool sends = entry.call.kind == Kind::send;
    const Rank ahead = sends ? entry.call.root + backend.ranks() - self : self + backend.ranks() - entry.call.root;
    const bool one_at_a_time = backend.peers().thread_blocks() == 1;
    const Rank receiver = sends ? entry.call.root : self;
    return {true, messages_[{&backend, entry.call.root, sends}]++, ahead % backend.ranks(),
            one_at_a_time ? receiver : 0};
  }

  std::map<const DeviceBackend*, std::uint32_t> collectives_;
  std::map<std::tuple<const DeviceBackend*, Rank, bool>, std::uint32_t> messages_;
  std::map<Wave, std::vector<const DeviceCall*>> waves_;
};

// Calls of one communicator, made by ranks of this process.
struct OwnCalls {
  std::size_t count = 0;
  std::uint32_t widest = 0;
  std::map<const DeviceBackend*, std::uint32_t> shares;  // Thread blocks.

  std::size_t calls_of_a_rank() const { return (count + shares.size() - 1) / shares.size(); }
};

// Messages of several waves may share a launch while the ranks' shares of the device suffice. With several
// communicators, each rank's share must suffice for its calls on all of them, so that they are not launched one after
// the other: a peer that joins other waves would launch a later wave of one communicator before an earlier one of
// another.
bool fit_one_launch(const std::vector<const DeviceCall*>& some, const std::vector<const DeviceCall*>& more) {
  std::map<std::uint64_t, OwnCalls> communicators;
  for (const auto* calls : {&some, &more}) {
    for (const DeviceCall* call : *calls) {
      const DeviceBackend& backend = call->backend();
      OwnCalls& own = communicators[backend.peers().process_group_id()];
      ++own.count;
      own.widest = std::max(own.widest, backend.message_channels(call->call));
      own.shares[&backend] = backend.peers().thread_blocks();
    }
  }
  if (some.size() + more.size() > kMaxCalls) return false;
  std::size_t calls_of_a_rank = 0, all_shares = 0;
  std::uint32_t widest = 0, min_share = ~0U;
  for (const auto& [id, own] : communicators) {
    calls_of_a_rank += own.calls_of_a_rank();
    widest = std::max(widest, own.widest);
    for (const auto& [backend, share] : own.shares) {
      all_shares += share;
      min_share = std::min(min_share, share);
    }
  }
  if (communicators.size() > 1) return calls_of_a_rank * widest <= min_share;
  return (some.size() + more.size()) * widest <= all_shares;
}

// Cuts calls that run side by side into parts for one launch each, between communicators, which need not run at the
// same time. The order of communicators is the same in all processes.
std::vector<std::vector<const DeviceCall*>> parts_of(std::vector<const DeviceCall*> calls) {
  if (calls.size() <= kMaxCalls) return {std::move(calls)};
  std::map<std::uint64_t, std::vector<const DeviceCall*>> communicators;
  for (const DeviceCall* call : calls) communicators[call->backend().peers().hosts().id()].push_back(call);
  std::vector<std::vector<const DeviceCall*>> parts;
  for (const auto& [id, own] : communicators) {
    if (parts.empty() || parts.back().size() + own.size() > kMaxCalls) parts.emplace_back();
    parts.back().insert(parts.back().end(), own.begin(), own.end());
  }
  return parts;
}

// True if `next` is one collective of the same rank and stream as `last`, so that they may run in order. The autotuner
// times single launches.
bool follows(const DeviceCallSchedule::Group& last, const DeviceCallSchedule::Group& next) {
  const DeviceCall &before = *last.calls.back(), &call = *next.calls.front();
  const DeviceBackend& backend = call.backend();
  return !last.messages && !next.messages && next.calls.size() == 1 && (last.calls.size() == 1 || last.in_order) &&
         last.calls.size() < kMaxCalls && &before.backend() == &backend && before.stream == call.stream &&
         !backend.peers().time_sliced() && !backend.is_tuned() &&
         !backend.by_copy_engines(before.call, before.options) && !backend.by_copy_engines(call.call, call.options);
}

}  // namespace

bool is_message(const Call& call) { return call.kind == Kind::send || call.kind == Kind::recv; }

DeviceCallSchedule::DeviceCallSchedule(std::span<const DeviceCall> grouped) {
  const Waves waves(grouped);
  for (const auto& [wave, calls] : waves.all()) {
    std::map<Device*, std::vector<const DeviceCall*>> by_device;
    std::multimap<std::uint64_t, const DeviceCall*> by_copy_engines;  // By communicator.
    for (const DeviceCall* call : calls) {
      const DeviceBackend& backend = call->backend();
      if (backend.by_copy_engines(call->call, call->options))
        by_copy_engines.emplace(backend.peers().hosts().id(), call);
      else by_device[&backend.device()].push_back(call);
    }
    for (auto& [device, own] : by_device) {
      for (std::vector<const DeviceCall*>& part : parts_of(std::move(own)))
        add({device, std::get<0>(wave), std::get<1>(wave), std::move(part)});
    }
    for (const auto& [id, call] : by_copy_engines)
      add({&call->backend().device(), std::get<0>(wave), std::get<1>(wave), {call}});
  }
}

Status DeviceCallSchedule::check() const {
  for (const Group& group : groups_) {
    if (group.calls.size() <= kMaxCalls) continue;
    return unsupported("one thread has " + std::to_string(group.calls.size()) +
                       " calls that must run side by side on one device, more than " + std::to_string(kMaxCalls) +
                       ": end the group earlier, or drive fewer ranks by a thread");
  }
  return {};
}

// Messages between the same two ranks share a lane, so they run in sequence.
void DeviceCallSchedule::add(Group group) {
  std::size_t& latest = latest_[group.device];
  Group* last = latest == 0 ? nullptr : &groups_[latest - 1];
  if (last != nullptr && follows(*last, group)) {
    last->calls.push_back(group.calls.front());
    last->in_order = true;
    return;
  }
  const bool joins = last != nullptr && group.messages && last->messages && last->nth == group.nth;
  if (joins && fit_one_launch(last->calls, group.calls)) {
    last->calls.insert(last->calls.end(), group.calls.begin(), group.calls.end());
    return;
  }
  groups_.push_back(std::move(group));
  latest = groups_.size();
}

}  // namespace tutti
