// Programs whose layout is known before they run: a single piece, each message one slice of one extent. Their steps
// are obeyed one after the other, from a list in which all that does not change between calls has been looked up.
#pragma once

#include "src/executor/program.h"

namespace tutti {

enum class Role : std::uint8_t {
  read,
  write,
  receive_lines,
  receive_bulk,
  send_lines,
  send_copy,
  send_bulk,
  await,
  signal
};

struct StraightOperand {
  const Operand* operand = nullptr;
  LaneState* lane = nullptr;           // Of all but `read` and `write`,
  std::byte* const* memory = nullptr;  // which have the place where the buffer's address is found,
  std::uint64_t offset = 0;            // and how many bytes behind it they begin.
  Role role = Role::read;
  std::uint16_t index = 0;  // Among the step's operands on its side that have data.
};

// What is left to do at a lane when the fold is done: send, or give the slot back.
struct StraightRelease {
  LaneState* lane = nullptr;
  Role role = Role::await;  // That of the operand.
};

struct StraightStep {
  std::uint32_t first = 0;          // Of its operands.
  std::uint32_t first_release = 0;  // Sends come first: a peer waits for them.
  std::uint16_t releases = 0;
  std::uint16_t operands = 0;
  std::uint16_t inputs = 0, outputs = 0;  // That the fold reads and writes.
  Fold fold = Fold::partial;
  std::uint64_t count = 0;  // Elements.
  std::uint64_t bytes = 0;
};

// Null: the program is interpreted.
struct Straight {
  const StraightStep* steps = nullptr;
  const StraightOperand* operands = nullptr;
  const StraightRelease* releases = nullptr;
  std::uint32_t count = 0;
};

}  // namespace tutti
