#include "tests/ptx/machine/executor.h"

#include <algorithm>

namespace tutti::ptx {

bool Executor::has_ready() const {
  return std::any_of(warp_->groups.begin(), warp_->groups.end(),
                     [](const Group& each) { return each.state == Group::State::ready; });
}

// Unites ready groups with the same program counter.
void Executor::merge() {
  auto& groups = warp_->groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t j = groups.size(); j-- > i + 1;) {
      const bool same = groups[i].pc == groups[j].pc && groups[i].state == Group::State::ready &&
                        groups[j].state == Group::State::ready;
      if (!same) continue;
      groups[i].mask |= groups[j].mask;
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

// Chooses the group with the lowest program counter, so that groups meet again, or now and then any. False if none is
// ready.
bool Executor::choose() {
  merge();
  auto& groups = warp_->groups;
  std::size_t best = groups.size();
  std::uint32_t ready = 0;
  const bool any = groups.size() > 1 && random_.one_in(6);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].state != Group::State::ready) continue;
    ++ready;
    const bool better = best == groups.size() || (any ? random_.one_in(ready) : groups[i].pc < groups[best].pc);
    if (better) best = i;
  }
  if (best == groups.size()) {
    for (const Group& each : groups) {
      if (each.state != Group::State::gathering) continue;
      pc_ = each.pc;
      mask_ = each.mask;
      raise(FaultKind::barrier, "an aligned barrier is divergent: " + std::to_string(__builtin_popcount(each.mask)) +
                                    " of " + std::to_string(__builtin_popcount(warp_->live)) +
                                    " threads of the warp execute it; the others wait elsewhere");
    }
    return false;
  }
  current_ = best;
  merge_pc_ = ~0U;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i != best && groups[i].state == Group::State::ready && groups[i].pc >= groups[best].pc)
      merge_pc_ = std::min(merge_pc_, groups[i].pc);
  }
  return true;
}

bool Executor::run(Block& block, std::uint32_t warp, std::uint32_t quantum) {
  block_ = &block;
  warp_ = &block.warps[warp];
  warp_index_ = warp;
  code_ = block.running->code;
  lanes_.arena = warp_->arena;
  lanes_.constants = code_->constants.data();
  const std::uint64_t before = warp_instructions_;
  run_begin_ = before;
  const std::uint64_t limit = before + quantum;
  while (warp_instructions_ < limit && choose()) {
    while (warp_instructions_ < limit && step()) {
    }
  }
  warp_->instructions += warp_instructions_ - before;
  block.running->counters.warp_instructions += warp_instructions_ - before;
  return warp_instructions_ != before;
}

bool Executor::step() {
  Group& now = group();
  if (now.pc >= merge_pc_) {
    merge_pc_ = ~0U;
    return false;
  }
  const Instruction& in = code_->instructions[now.pc];
  pc_ = now.pc;
  mask_ = now.mask;
  if (in.guard >= 0) {
    const std::uint32_t predicate = *lanes_.in<std::uint32_t>(in.guard);
    mask_ &= in.guard_negated ? ~predicate : predicate;
  }
  ++warp_instructions_;
  instructions_ += now.mask == ~0U ? 32U : static_cast<std::uint64_t>(__builtin_popcount(now.mask));
  lanes_.mask = mask_;
  switch (in.kind) {
    case Kind::compute:
      if (mask_ != 0) in.run(lanes_, in);
      break;
    case Kind::branch: return branch(in);
    case Kind::call: return call(in);
    case Kind::ret: return return_from_call(in);
    case Kind::exit: return exit_threads();
    case Kind::load:
    case Kind::store:
    case Kind::atomic: access(in); break;
    case Kind::fence: fence(in); break;
    case Kind::barrier: return barrier(in);
    case Kind::warp_barrier:
    case Kind::vote:
    case Kind::shuffle:
    case Kind::reduce:
    case Kind::match: return rendezvous(in);
    case Kind::active_mask:
      lanes_.each([&](unsigned lane) { lanes_.out<std::uint32_t>(in.r[0])[lane] = mask_; });
      break;
    case Kind::special: read_special(in); break;
    case Kind::address_of:
      lanes_.each([&](unsigned lane) {
        const auto address = reinterpret_cast<std::uint64_t>(block_->running->launch.module->addresses()[in.target]);
        lanes_.out<std::uint64_t>(in.r[0])[lane] = address + static_cast<std::uint64_t>(in.value);
      });
      break;
    case Kind::check_written: check_written(in); break;
    case Kind::mark_written: *lanes_.out<std::uint32_t>(in.r[1]) |= mask_; break;
    case Kind::clear_written: *lanes_.out<std::uint32_t>(in.r[1]) &= ~mask_; break;
    case Kind::trace:
      if (mask_ != 0 && traced_.insert(code_->sites[pc_].statement).second)
        note_execution(*code_->source, *code_->sites[pc_].statement);
      break;
    case Kind::trap:
      if (mask_ != 0) raise(FaultKind::trap, "executes trap");
      break;
  }
  ++now.pc;
  return true;
}

void Executor::split_rest(std::uint32_t mask) {
  Group rest = group();
  rest.mask &= ~mask;
  rest.pc = pc_ + 1;
  group().mask = mask;
  if (rest.mask != 0) warp_->groups.push_back(rest);
}

bool Executor::branch(const Instruction& in) {
  if (mask_ == 0) {
    ++group().pc;
    return true;
  }
  const bool uniform = mask_ == group().mask;
  if (!uniform) split_rest(mask_);
  group().pc = in.target;
  return uniform;
}

bool Executor::call(const Instruction& in) {
  if (mask_ == 0) return ++group().pc, true;
  const bool uniform = mask_ == group().mask;
  if (!uniform) split_rest(mask_);
  lanes_.each([&](unsigned lane) { lanes_.out<std::uint32_t>(in.r[0])[lane] = pc_ + 1; });
  group().pc = in.target;
  return uniform;
}

bool Executor::return_from_call(const Instruction& in) {
  if (mask_ == 0) return ++group().pc, true;
  if (mask_ != group().mask) split_rest(mask_);
  const std::uint32_t* const to = lanes_.in<std::uint32_t>(in.r[0]);
  std::uint32_t left = mask_;
  while (left != 0) {
    const std::uint32_t pc = to[__builtin_ctz(left)];
    std::uint32_t same = 0;
    for (std::uint32_t lane = 0; lane < 32; ++lane) same |= static_cast<std::uint32_t>(to[lane] == pc) << lane;
    same &= left;
    left &= ~same;
    if (left == 0) {
      group().mask = same;
      group().pc = pc;
    } else {
      Group other = group();
      other.mask = same;
      other.pc = pc;
      warp_->groups.push_back(other);
    }
  }
  return false;
}

bool Executor::exit_threads() {
  if (mask_ == 0) return ++group().pc, true;
  split_rest(mask_);
  warp_->groups.erase(warp_->groups.begin() + static_cast<std::ptrdiff_t>(current_));
  warp_->live &= ~mask_;
  block_->live -= static_cast<std::uint32_t>(__builtin_popcount(mask_));
  ++events_;
  for (Group& each : warp_->groups) {  // They may have waited for these threads.
    if (each.state == Group::State::warp_wait || each.state == Group::State::gathering)
      each.state = Group::State::ready;
  }
  return false;
}

void Executor::check_written(const Instruction& in) {
  const std::uint32_t missing = mask_ & ~*lanes_.in<std::uint32_t>(in.r[1]);
  if (missing == 0) return;
  mask_ = missing;
  const Site& site = code_->sites[pc_];
  raise(FaultKind::uninitialised, "reads the register " +
                                      std::string(site.function->register_names[static_cast<std::size_t>(in.value)]) +
                                      ", which was never written");
}

std::uint64_t Executor::special(Special which, std::uint32_t lane) {
  const Extent& threads = block_->running->launch.block;
  const Extent& grid = block_->running->launch.grid;
  const std::uint32_t thread = warp_index_ * 32 + lane, one = 1U << lane;
  switch (which) {
    case Special::tid_x: return thread % threads.x;
    case Special::tid_y: return thread / threads.x % threads.y;
    case Special::tid_z: return thread / threads.x / threads.y;
    case Special::ntid_x: return threads.x;
    case Special::ntid_y: return threads.y;
    case Special::ntid_z: return threads.z;
    case Special::ctaid_x: return block_->index.x;
    case Special::ctaid_y: return block_->index.y;
    case Special::ctaid_z: return block_->index.z;
    case Special::nctaid_x: return grid.x;
    case Special::nctaid_y: return grid.y;
    case Special::nctaid_z: return grid.z;
    case Special::laneid: return lane;
    case Special::warpid: return warp_index_;
    case Special::nwarpid: return block_->warps.size();
    case Special::smid: return block_->multiprocessor;
    case Special::nsmid: return 8;
    case Special::clock: return clock() & 0xffffffffU;
    case Special::clock64:
    case Special::globaltimer: return clock();
    case Special::lanemask_eq: return one;
    case Special::lanemask_lt: return one - 1;
    case Special::lanemask_le: return one - 1 + one;
    case Special::lanemask_gt: return ~(one - 1 + one);
    case Special::lanemask_ge: return ~(one - 1);
    case Special::dynamic_smem_size: return block_->running->launch.dynamic_shared_bytes;
  }
  return 0;
}

void Executor::read_special(const Instruction& in) {
  lanes_.each([&](unsigned lane) {
    const std::uint64_t value = special(static_cast<Special>(in.action), lane);
    if (in.bytes == 8) {
      lanes_.out<std::uint64_t>(in.r[0])[lane] = value;
    } else {
      lanes_.out<std::uint32_t>(in.r[0])[lane] = static_cast<std::uint32_t>(value);
    }
  });
}

void Executor::check_stuck(Block& block) {
  if (block.live == 0) return;
  block_ = &block;
  std::uint32_t arrived = 0;
  for (std::uint32_t w = 0; w < block.warps.size(); ++w) {
    warp_ = &block.warps[w];
    if (has_ready()) return;
    for (const Group& each : warp_->groups) {
      warp_index_ = w;
      pc_ = each.pc;
      mask_ = each.mask;
      if (each.state == Group::State::barrier) arrived += static_cast<std::uint32_t>(__builtin_popcount(each.mask));
    }
  }
  raise(FaultKind::barrier, "no thread of the block can continue: " + std::to_string(arrived) + " of " +
                                std::to_string(block.threads) + " threads wait at barriers, " +
                                std::to_string(block.live - arrived) + " for threads of their warp, " +
                                std::to_string(block.threads - block.live) + " exited");
}

}  // namespace tutti::ptx
