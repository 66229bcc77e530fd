// Instructions of a function between decoding and the assignment of registers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/ptx/machine/code.h"

namespace tutti::ptx {

// An operand that becomes Instruction::r[i].
struct DraftSlot {
  enum class Use : std::uint8_t { none, source, result };
  Use use = Use::none;
  Width width = Width::bits32;
  std::int32_t reg = -1;  // Register of the function, or -1: the constant `number`.
  std::int64_t number = 0;
};

struct Draft {
  Instruction in;
  std::array<DraftSlot, 6> slots;
  std::int32_t guard = -1;           // Register.
  std::uint32_t statement = 0;       // Index in the function.
  std::string_view label;            // Target of a branch.
  const Function* callee = nullptr;  // Target of a call.
};

// Where variables lie. Offsets in parameter memory (kernels) or local memory (functions).
struct Layout {
  std::vector<std::uint32_t> parameters, results, locals, arguments;
};

struct Addresses {
  const Layout& layout;
  const std::unordered_map<std::string_view, std::uint32_t>& shared;
};

// Decodes all statements of a function. Fails at the first instruction that the machine does not know.
Status decode_function(const Source& source, const Function& function, const Addresses& addresses,
                       std::vector<Draft>& drafts);

// Slots of a function's registers, relative to its frame.
struct Frame {
  std::vector<std::int32_t> slots;   // By register; -1: unused.
  std::int32_t return_address = -1;  // Slot.
  std::uint32_t bytes = 0;
  std::uint32_t registers = 0;  // Registers of 32 bits that are live at once, at most.
};

// Registers with disjoint lifetimes share a slot. Adds checks of registers that may be read before they are written.
Status assign_registers(const Function& function, std::vector<Draft>& drafts, Frame& frame);

}  // namespace tutti::ptx
