// Decoded instructions of a kernel with all functions that it calls. Callees precede callers, so among the threads of a
// warp those with the smallest program counter are deepest in calls and loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/ptx/machine/source.h"

namespace tutti::ptx {

// Registers of a warp: a slot holds one register for 32 threads. Slots of 8 to 32 bits are uint32_t[32], of 64 bits
// uint64_t[32], of 128 bits uint64_t[64] (low words, then high words). A predicate is a mask of 32 bits.
struct Lanes {
  std::byte* arena = nullptr;
  const std::byte* constants = nullptr;
  std::uint32_t mask = 0;  // Threads that execute the instruction.

  template <typename T>
  T* out(std::int32_t slot) const {
    return reinterpret_cast<T*>(arena + slot);
  }
  template <typename T>
  const T* in(std::int32_t slot) const {
    return reinterpret_cast<const T*>(slot >= 0 ? arena + slot : constants + ~slot);
  }
  template <typename F>
  void each(F&& run) const {
    if (mask == ~0U) {
#pragma GCC ivdep
      for (unsigned lane = 0; lane < 32; ++lane) run(lane);
    } else {
      for (std::uint32_t left = mask; left != 0; left &= left - 1) run(static_cast<unsigned>(__builtin_ctz(left)));
    }
  }
};

struct Instruction;
using Compute = void (*)(const Lanes&, const Instruction&);

enum class Kind : std::uint8_t {
  compute,
  branch,
  call,
  ret,
  exit,
  load,
  store,
  atomic,
  fence,
  barrier,
  warp_barrier,
  vote,
  shuffle,
  reduce,
  match,
  active_mask,
  special,        // Reads a special register.
  address_of,     // Address of a global variable.
  check_written,  // Faults if the register r[0] was not written; the mask is in r[1].
  mark_written,
  clear_written,
  trace,  // Notes that the statement executes.
  trap,
};

enum class Space : std::uint8_t { generic, global, shared, local, parameter };
enum class Order : std::uint8_t { weak, volatile_, relaxed, acquire, release, acquire_release, sequential };
enum class Scope : std::uint8_t { block, device, system };
enum class Atomic : std::uint8_t {
  exchange,
  compare,
  add,
  minimum,
  maximum,
  bit_and,
  bit_or,
  bit_xor,
  increment,
  decrement
};
// Loads that add, and stores, at a multicast address. Sums of 16-bit floats are those of pairs.
enum class Multimem : std::uint8_t { none, store, sum_float32, sum_float64, sum_float16, sum_bfloat16 };
enum class Vote : std::uint8_t { all, any, uniform, ballot };
enum class BarrierAction : std::uint8_t { wait, arrive, all, any, count };
enum class Shuffle : std::uint8_t { up, down, butterfly, index };
enum class Special : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  clock,
  clock64,
  globaltimer,
  lanemask_eq,
  lanemask_lt,
  lanemask_le,
  lanemask_gt,
  lanemask_ge,
  dynamic_smem_size,
};

// Reference window of a state space in the generic address space. Addresses of the process are below.
inline constexpr std::uint64_t kSharedWindow = std::uint64_t{1} << 56;
inline constexpr std::uint64_t kLocalWindow = std::uint64_t{2} << 56;
inline constexpr std::uint64_t kParameterWindow = std::uint64_t{3} << 56;
inline constexpr unsigned kWindowShift = 56;

struct Instruction {
  Compute run = nullptr;
  Kind kind = Kind::compute;
  Space space = Space::generic;
  Order order = Order::weak;
  Scope scope = Scope::system;
  std::uint8_t bytes = 0;   // Size of an element of a memory access, or of the type.
  std::uint8_t count = 1;   // Elements of a vector access.
  std::uint8_t action = 0;  // Atomic, Vote, Shuffle, Special, operation of bar.red.
  std::uint8_t wide = 0;    // Bit i: r[i] has 64 bits.
  Multimem multimem = Multimem::none;
  bool is_signed = false, is_float = false;
  bool guard_negated = false, aligned = false, has_predicate = false;
  std::int32_t guard = -1;                       // Slot of the predicate, or -1.
  std::int32_t r[6] = {-1, -1, -1, -1, -1, -1};  // Slots; negative: constants.
  std::int64_t value = 0;                        // Offset of an address, or an immediate.
  std::uint32_t target = 0;  // Branch or call: instruction. Access: 1 + index of the variable, or 0.
};

struct Site {
  const Function* function = nullptr;
  const Statement* statement = nullptr;
};

struct Code {
  const Source* source = nullptr;
  const KernelInfo* info = nullptr;
  std::vector<Instruction> instructions;
  std::vector<Site> sites;  // As `instructions`.
  std::vector<std::byte> constants;
  std::uint32_t entry = 0;
  std::uint32_t arena_bytes = 0;     // Registers of a warp.
  std::uint32_t local_bytes = 0;     // Per thread, with the parameters of functions.
  std::uint32_t dynamic_shared = 0;  // Offset of dynamic shared memory.
};

// Decodes all kernels of the source. Fills source.kernels and source.codes.
Status decode_source(Source& source);

}  // namespace tutti::ptx
