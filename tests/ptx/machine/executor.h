// Executes instructions of one warp of a resident thread block.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "tests/ptx/machine/block.h"
#include "tests/ptx/machine/global_memory.h"
#include "tests/ptx/machine/random.h"

namespace tutti::ptx {

class Executor {
 public:
  Executor(GlobalMemory& memory, Random& random, const MachineOptions& options)
      : memory_(memory), random_(random), options_(options) {}

  // Executes up to `quantum` instructions of a warp. Returns whether it executed any. Throws Raised or RaisedRace; pc()
  // is the instruction then.
  bool run(Block& block, std::uint32_t warp, std::uint32_t quantum);

  // Raises a fault if threads are left and all of them wait for each other.
  void check_stuck(Block& block);

  std::uint32_t pc() const { return pc_; }
  std::uint32_t warp() const { return warp_index_; }
  std::uint32_t mask() const { return mask_; }  // Threads that execute the instruction.
  std::uint64_t instructions() const { return instructions_; }
  std::uint64_t warp_instructions() const { return warp_instructions_; }
  std::uint64_t events() const { return events_; }  // Barriers passed and threads exited.
  void set_clock(std::uint64_t now_ns) {
    clock_base_ = now_ns;
    clock_instructions_ = warp_instructions_;
  }
  std::uint64_t clock() const { return clock_base_ + (warp_instructions_ - clock_instructions_); }

 private:
  bool choose();
  bool has_ready() const;
  void merge();
  void split_rest(std::uint32_t mask);  // Threads of the group beyond `mask` continue at the next instruction.
  Group& group() { return warp_->groups[current_]; }
  bool step();  // Returns false if the group may have to change.

  bool branch(const Instruction& in);
  bool call(const Instruction& in);
  bool return_from_call(const Instruction& in);
  bool exit_threads();
  void check_written(const Instruction& in);
  void read_special(const Instruction& in);
  std::uint64_t special(Special which, std::uint32_t lane);

  void access(const Instruction& in);
  void gather(Access& access, const Instruction& in);
  void scatter(const Access& access, const Instruction& in);
  void find_addresses(Access& access, const Instruction& in);
  bool is_uniform(const Access& access, Space space) const;
  void access_lanes(Access& access, Space space);
  void count(const Access& access);
  void count_polling(const Access& access);
  bool access_local_slot(const Instruction& in);
  void access_space(Access& access, Space space);
  void access_multicast(Access& access);
  void access_shared(Access& access);
  void access_local(Access& access);
  void access_parameters(Access& access);
  void atomic_shared(Access& access, std::uint32_t lane);
  void publish_shared(const Access& access, std::uint32_t lane);
  void fence(const Instruction& in);

  bool barrier(const Instruction& in);
  bool gather_warp(const Instruction& in);
  void complete_barrier(std::uint32_t number);
  void note_arrival(Barrier& barrier);
  void order_block(const Barrier& barrier);
  bool rendezvous(const Instruction& in);
  std::uint32_t complete_members(const Instruction& in, std::uint32_t& waiting);
  void exchange(const Instruction& in, std::uint32_t lanes);
  void vote(const Instruction& in, std::uint32_t lanes);
  void shuffle(const Instruction& in, std::uint32_t lanes);
  void reduce(const Instruction& in, std::uint32_t lanes);
  void match(const Instruction& in, std::uint32_t lanes);
  void order_warp(std::uint32_t lanes);
  void put_predicate(std::int32_t slot, std::uint32_t bits, std::uint32_t lanes);
  [[noreturn]] void raise(FaultKind kind, const std::string& what) const {
    throw Raised{kind, what, static_cast<unsigned>(__builtin_ctz(mask_ == 0 ? 1U : mask_))};
  }

  GlobalMemory& memory_;
  Random& random_;
  const MachineOptions& options_;
  Block* block_ = nullptr;
  Warp* warp_ = nullptr;
  const Code* code_ = nullptr;
  std::uint32_t warp_index_ = 0, pc_ = 0, mask_ = 0;
  std::size_t current_ = 0;
  std::uint32_t merge_pc_ = 0;  // The lowest program counter of another ready group.
  Lanes lanes_;
  std::uint64_t instructions_ = 0, warp_instructions_ = 0, events_ = 0;
  std::uint64_t run_begin_ = 0;  // warp_instructions_ when run() began.
  std::uint64_t clock_base_ = 0, clock_instructions_ = 0;
  std::unordered_set<const Statement*> traced_;
};

}  // namespace tutti::ptx
