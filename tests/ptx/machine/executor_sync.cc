// Barriers, and exchanges between the threads of a warp.
#include <algorithm>

#include "tests/ptx/machine/executor.h"

namespace tutti::ptx {
namespace {

std::uint32_t ones(std::uint32_t mask) { return static_cast<std::uint32_t>(__builtin_popcount(mask)); }

std::string as_mask(std::uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

// Slot of the member mask.
std::int32_t members_of(const Instruction& in) {
  switch (in.kind) {
    case Kind::warp_barrier: return in.r[1];
    case Kind::shuffle: return in.r[5];
    default: return in.r[2];
  }
}

}  // namespace

void Executor::put_predicate(std::int32_t slot, std::uint32_t bits, std::uint32_t lanes) {
  std::uint32_t* const predicate = lanes_.out<std::uint32_t>(slot);
  *predicate = (*predicate & ~lanes) | (bits & lanes);
}

// Waits for the warp's other threads. Returns whether all threads of the warp are in the group.
bool Executor::gather_warp(const Instruction& in) {
  auto& groups = warp_->groups;
  for (std::size_t i = groups.size(); i-- > 0;) {
    if (i == current_ || groups[i].state != Group::State::gathering || groups[i].pc != pc_) continue;
    group().mask |= groups[i].mask;
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    if (i < current_) --current_;
  }
  mask_ = group().mask;
  if (warp_->live != warp_->started)
    raise(FaultKind::barrier,
          std::to_string(ones(warp_->started & ~warp_->live)) + " threads of the warp exited before the barrier");
  if (in.aligned && mask_ != warp_->live) {
    group().state = Group::State::gathering;
    return false;
  }
  return true;
}

bool Executor::barrier(const Instruction& in) {
  if (mask_ == 0) return ++group().pc, true;
  if (mask_ != group().mask) {
    if (in.aligned) raise(FaultKind::barrier, "the guard of an aligned barrier differs among threads of the warp");
    split_rest(mask_);
  }
  if (in.aligned && !gather_warp(in)) return false;
  const auto first = static_cast<std::uint32_t>(__builtin_ctz(mask_));
  const std::uint32_t number = lanes_.in<std::uint32_t>(in.r[1])[first];
  if (number >= 16)
    raise(FaultKind::barrier, "barrier " + std::to_string(number) + " does not exist; barriers are 0 to 15");
  const std::uint32_t expected = in.has_predicate ? lanes_.in<std::uint32_t>(in.r[2])[first] : block_->threads;
  if (expected == 0 || expected % 32 != 0) {
    if (in.has_predicate)
      raise(FaultKind::barrier, "a barrier for " + std::to_string(expected) + " threads; allowed are multiples of 32");
  }
  Barrier& barrier = block_->barriers[number];
  if (barrier.waiting.empty()) {
    barrier.waiting.assign(block_->warps.size(), 0);
    barrier.before = {};
    barrier.arrived = barrier.trues = 0;
    barrier.expected = expected;
    barrier.action = in.action;
  }
  const auto action = static_cast<BarrierAction>(in.action);
  const bool joins = barrier.action == in.action || action == BarrierAction::arrive ||
                     static_cast<BarrierAction>(barrier.action) == BarrierAction::arrive;
  if (barrier.expected != expected || !joins)
    raise(FaultKind::barrier, "barrier " + std::to_string(number) + " is used in two ways at once: for " +
                                  std::to_string(barrier.expected) + " and for " + std::to_string(expected) +
                                  " threads, or with two operations");
  if (action != BarrierAction::arrive) barrier.action = in.action;
  if (action >= BarrierAction::all) {
    std::uint32_t predicate = *lanes_.in<std::uint32_t>(in.r[3]);
    if (in.value != 0) predicate = ~predicate;
    barrier.trues += ones(predicate & mask_);
  }
  barrier.arrived += ones(mask_);
  if (barrier.arrived > barrier.expected)
    raise(FaultKind::barrier,
          std::to_string(barrier.arrived) + " threads arrived at a barrier for " + std::to_string(barrier.expected));
  if (action == BarrierAction::arrive) {
    note_arrival(barrier);
    ++group().pc;
  } else {
    barrier.waiting[warp_index_] |= mask_;
    group().state = Group::State::barrier;
    group().barrier = static_cast<std::uint8_t>(number);
  }
  if (barrier.arrived == barrier.expected) complete_barrier(number);
  return false;
}

void Executor::complete_barrier(std::uint32_t number) {
  Barrier& barrier = block_->barriers[number];
  ++events_;
  ++block_->running->counters.barriers;
  memory_.show_to_block(*block_);
  order_block(barrier);
  const Lanes saved = lanes_;
  for (Warp& warp : block_->warps) {
    lanes_.arena = warp.arena;
    for (Group& each : warp.groups) {
      if (each.state != Group::State::barrier || each.barrier != number) continue;
      const Instruction& in = code_->instructions[each.pc];
      const auto action = static_cast<BarrierAction>(in.action);
      lanes_.mask = each.mask;
      if (action == BarrierAction::all) put_predicate(in.r[0], barrier.trues == barrier.arrived ? ~0U : 0, each.mask);
      if (action == BarrierAction::any) put_predicate(in.r[0], barrier.trues > 0 ? ~0U : 0, each.mask);
      if (action == BarrierAction::count)
        lanes_.each([&](unsigned lane) { lanes_.out<std::uint32_t>(in.r[0])[lane] = barrier.trues; });
      each.state = Group::State::ready;
      ++each.pc;
    }
  }
  lanes_ = saved;
  barrier.waiting.clear();
}

// The threads do not wait: what they did happens before what waiting threads do after the barrier, and not the reverse.
void Executor::note_arrival(Barrier& barrier) {
  const Clocks& clocks = memory_.clocks();
  for (std::uint32_t left = mask_; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
    ThreadClocks& thread = warp_->threads[lane];
    const ViewRef own = clocks.with_self(thread.view, memory_.event_of(*block_, warp_index_, lane));
    barrier.before = clocks.join(barrier.before, own);
    ++thread.clock;
  }
}

// Accesses before the barrier happen before accesses after it.
void Executor::order_block(const Barrier& barrier) {
  const bool whole = barrier.expected == block_->threads && !barrier.before;
  View self;
  if (whole) self.blocks.push_back({block_->number, block_->epoch + 1});
  ViewRef joined = barrier.before, last;
  for (std::uint32_t w = 0; w < block_->warps.size(); ++w) {
    for (std::uint32_t left = barrier.waiting[w]; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      ThreadClocks& thread = block_->warps[w].threads[lane];
      if (!(thread.view == last)) joined = memory_.clocks().join(joined, thread.view);
      last = thread.view;
      if (!whole)
        self.threads.push_back({KnownThread::key_of(block_->number, w * 32 + lane), block_->epoch, thread.clock++});
    }
  }
  joined = memory_.clocks().join(joined, ViewRef(std::move(self)));
  if (whole) ++block_->epoch;
  for (std::uint32_t w = 0; w < block_->warps.size(); ++w) {
    for (std::uint32_t left = barrier.waiting[w]; left != 0; left &= left - 1)
      block_->warps[w].threads[static_cast<std::size_t>(__builtin_ctz(left))].view = joined;
  }
}

// Returns the threads whose members are all in the group, and those that must wait.
std::uint32_t Executor::complete_members(const Instruction& in, std::uint32_t& waiting) {
  const std::uint32_t* const members = lanes_.in<std::uint32_t>(members_of(in));
  std::uint32_t complete = 0;
  waiting = 0;
  for (std::uint32_t left = mask_; left != 0;) {
    const auto first = static_cast<std::uint32_t>(__builtin_ctz(left));
    const std::uint32_t wanted = members[first];
    std::uint32_t same = 0;
    for (std::uint32_t lane = first; lane < 32; ++lane)
      same |= static_cast<std::uint32_t>(members[lane] == wanted) << lane;
    same &= left;
    left &= ~same;
    if ((same & ~wanted) != 0) {
      mask_ = same & ~wanted;
      raise(FaultKind::mask, "the member mask " + as_mask(wanted) + " does not contain the thread");
    }
    if ((wanted & ~warp_->started) != 0 && wanted != ~0U) {
      mask_ = same;
      raise(FaultKind::mask, "the member mask " + as_mask(wanted) + " names threads that do not exist; the warp has " +
                                 as_mask(warp_->started));
    }
    const bool all = (wanted & warp_->live & ~same) == 0;
    (all ? complete : waiting) |= same;
  }
  return complete;
}

bool Executor::rendezvous(const Instruction& in) {
  if (mask_ == 0) return ++group().pc, true;
  if (mask_ != group().mask) split_rest(mask_);
  std::uint32_t waiting = 0;
  std::uint32_t complete = complete_members(in, waiting);
  auto& groups = warp_->groups;
  if (waiting != 0) {  // Some wait already?
    for (std::size_t i = groups.size(); i-- > 0;) {
      if (i == current_ || groups[i].state != Group::State::warp_wait || groups[i].pc != pc_) continue;
      group().mask |= groups[i].mask;
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
      if (i < current_) --current_;
    }
    mask_ = group().mask;
    complete = complete_members(in, waiting);
  }
  if (complete != 0) exchange(in, complete);
  if (waiting == 0) return ++group().pc, groups.size() == 1;
  Group rest = group();
  rest.mask = waiting;
  rest.state = Group::State::warp_wait;
  if (complete == 0) {
    group() = rest;
    return false;
  }
  group().mask = complete;
  ++group().pc;
  groups.push_back(rest);
  return false;
}

// Executes the instruction for all threads with the same member mask.
void Executor::exchange(const Instruction& in, std::uint32_t lanes) {
  const std::uint32_t* const members = lanes_.in<std::uint32_t>(members_of(in));
  while (lanes != 0) {
    const std::uint32_t wanted = members[__builtin_ctz(lanes)];
    const std::uint32_t same = lanes & wanted;
    lanes &= ~wanted;
    lanes_.mask = same;
    switch (in.kind) {
      case Kind::warp_barrier: order_warp(same); break;
      case Kind::vote: vote(in, same); break;
      case Kind::shuffle: shuffle(in, same); break;
      case Kind::reduce: reduce(in, same); break;
      default: match(in, same); break;
    }
  }
}

// Like order_block(), for threads of a warp. Their stores become visible to all, since the buffer knows no group of
// threads between one and the block.
void Executor::order_warp(std::uint32_t lanes) {
  if (ones(lanes) < 2) return;
  memory_.drain_visible(*block_, warp_index_, lanes);
  View self;
  ViewRef joined, last;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
    ThreadClocks& thread = warp_->threads[lane];
    if (!(thread.view == last)) joined = memory_.clocks().join(joined, thread.view);
    last = thread.view;
    self.threads.push_back(
        {KnownThread::key_of(block_->number, warp_index_ * 32 + lane), block_->epoch, thread.clock++});
  }
  joined = memory_.clocks().join(joined, ViewRef(std::move(self)));
  for (std::uint32_t left = lanes; left != 0; left &= left - 1)
    warp_->threads[static_cast<std::size_t>(__builtin_ctz(left))].view = joined;
}

void Executor::vote(const Instruction& in, std::uint32_t lanes) {
  std::uint32_t trues = *lanes_.in<std::uint32_t>(in.r[1]);
  if (in.value != 0) trues = ~trues;
  trues &= lanes;
  switch (static_cast<Vote>(in.action)) {
    case Vote::all: return put_predicate(in.r[0], trues == lanes ? ~0U : 0, lanes);
    case Vote::any: return put_predicate(in.r[0], trues != 0 ? ~0U : 0, lanes);
    case Vote::uniform: return put_predicate(in.r[0], trues == 0 || trues == lanes ? ~0U : 0, lanes);
    case Vote::ballot: return lanes_.each([&](unsigned lane) { lanes_.out<std::uint32_t>(in.r[0])[lane] = trues; });
  }
}

void Executor::shuffle(const Instruction& in, std::uint32_t lanes) {
  std::uint32_t from[32];
  std::copy_n(lanes_.in<std::uint32_t>(in.r[2]), 32, from);
  std::uint32_t valid = 0;
  lanes_.each([&](unsigned lane) {
    const std::uint32_t by = lanes_.in<std::uint32_t>(in.r[3])[lane] & 31, c = lanes_.in<std::uint32_t>(in.r[4])[lane];
    const std::uint32_t clamp = c & 31, segment = c >> 8 & 31;
    const std::uint32_t last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    std::uint32_t source = lane;
    bool inside = true;
    switch (static_cast<Shuffle>(in.action)) {
      case Shuffle::up:
        inside = static_cast<std::int32_t>(lane - by) >= static_cast<std::int32_t>(last);
        source = lane - by;
        break;
      case Shuffle::down: source = lane + by, inside = source <= last; break;
      case Shuffle::butterfly: source = lane ^ by, inside = source <= last; break;
      case Shuffle::index: source = first | (by & ~segment), inside = source <= last; break;
    }
    if (!inside) source = lane;
    if ((lanes >> source & 1) == 0) {
      mask_ = 1U << lane;
      raise(FaultKind::mask, "shfl reads thread " + std::to_string(source) +
                                 " of the warp, which does not take part; " + as_mask(lanes) + " do");
    }
    valid |= static_cast<std::uint32_t>(inside) << lane;
    lanes_.out<std::uint32_t>(in.r[0])[lane] = from[source];
  });
  if (in.has_predicate) put_predicate(in.r[1], valid, lanes);
}

void Executor::reduce(const Instruction& in, std::uint32_t lanes) {
  const std::uint32_t* const from = lanes_.in<std::uint32_t>(in.r[1]);
  std::uint32_t result = from[__builtin_ctz(lanes)];
  for (std::uint32_t left = lanes & (lanes - 1); left != 0; left &= left - 1) {
    const std::uint32_t value = from[__builtin_ctz(left)];
    const bool less =
        in.is_signed ? static_cast<std::int32_t>(value) < static_cast<std::int32_t>(result) : value < result;
    switch (static_cast<Atomic>(in.action)) {
      case Atomic::add: result += value; break;
      case Atomic::minimum: result = less ? value : result; break;
      case Atomic::maximum: result = less ? result : value; break;
      case Atomic::bit_and: result &= value; break;
      case Atomic::bit_or: result |= value; break;
      default: result ^= value; break;
    }
  }
  lanes_.each([&](unsigned lane) { lanes_.out<std::uint32_t>(in.r[0])[lane] = result; });
}

void Executor::match(const Instruction& in, std::uint32_t lanes) {
  const auto value = [&](unsigned lane) {
    return in.wide != 0 ? lanes_.in<std::uint64_t>(in.r[1])[lane] : lanes_.in<std::uint32_t>(in.r[1])[lane];
  };
  std::uint32_t results[32] = {};
  lanes_.each([&](unsigned lane) {
    for (unsigned other = 0; other < 32; ++other) {
      if ((lanes >> other & 1) != 0 && value(other) == value(lane)) results[lane] |= 1U << other;
    }
  });
  const bool all = results[__builtin_ctz(lanes)] == lanes;
  lanes_.each([&](unsigned lane) {
    const std::uint32_t result = in.action == 0 ? results[lane] : all ? lanes : 0;
    lanes_.out<std::uint32_t>(in.r[0])[lane] = result;
  });
  if (in.has_predicate) put_predicate(in.r[3], all ? ~0U : 0, lanes);
}

}  // namespace tutti::ptx
