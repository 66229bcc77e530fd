// A straight program that runs in one chunk, as a list of moves in which all that does not change from call to call has
// been looked up. Obeyed by a thread that waits where it stands: nothing is kept for it to come back to. What the moves
// mean is what StraightRun does; a call may be run by either.
#pragma once

#include <vector>

#include "src/base/status.h"
#include "src/executor/cpu/machine.h"

namespace tutti {

enum class MoveKind : std::uint8_t {
  look,      // Nothing was awaited so far, and now something will be.
  linger,    // Leaves the peer the time to answer.
  line,      // Receives a small message that lies in one line,
  ll,        // in several,
  message,   // a message in a slot,
  flag,      // or none.
  room,      // Waits until the next slot may be written.
  read,      // Memory is the fold's source `index`,
  write,     // its target,
  outgoing,  // a small message that is put together,
  slot,      // the next slot,
  back,      // or that of the message that has come.
  fold,      // `bytes`: elements.
  copy,      // Sends a small message from memory,
  send,      // or what was folded for it;
  post,      // what lies in the slot, or a flag.
  take       // What was received is done with.
};

struct Move {
  MoveKind kind = MoveKind::look;
  Fold fold = Fold::partial;
  std::uint16_t index = 0;    // Of a source or target. fold: how many sources.
  std::uint16_t targets = 0;  // Of a fold.
  LaneState* lane = nullptr;
  const Operand* operand = nullptr;  // The lane's.
  std::byte* const* base = nullptr;  // The place where the buffer's address is found,
  std::uint64_t offset = 0;          // and what lies between it and the memory.
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Move) == 48);

// Empty if the program is not straight or not of one chunk, or has steps without data. `outgoing`: the operand of the
// machine whose stage holds a small message that is put together.
std::vector<Move> brief(const Launch& launch, std::uint32_t outgoing);

// Hooks: look(), and Status await(const Blocked&, Progress), which returns when the peer has moved, or fails; it is
// told `mismatch` where what has arrived belongs to another call. The machine is plain().
template <typename Hooks>
class BriefRun {
 public:
  BriefRun(const std::vector<Move>& moves, Signature signature, CpuMachine& machine, Hooks& hooks)
      : moves_(moves), signature_(signature), machine_(machine), hooks_(hooks) {}

  Status run() {
    for (const Move& move : moves_) {
      switch (move.kind) {
        case MoveKind::look: hooks_.look(); break;
        case MoveKind::linger: linger(); break;
        case MoveKind::line: {
          const std::byte* const line = slot_of(move.lane->view, move.lane->next);
          if (load_acquire(flag_of(line)) != line_flag(*move.lane, signature_)) TUTTI_CHECK_OK(receive_ll(move));
          machine_.source(move.index, const_cast<std::byte*>(line) + line_begin(move.bytes));
          break;
        }
        case MoveKind::ll: TUTTI_CHECK_OK(receive_ll(move)); break;
        case MoveKind::message:
          if (!simple_arrived(*move.lane) || !simple_matches(*move.lane, signature_)) TUTTI_CHECK_OK(receive(move));
          machine_.source(move.index, slot_of(move.lane->view, move.lane->next));
          break;
        case MoveKind::flag:
          if (!simple_arrived(*move.lane) || !simple_matches(*move.lane, signature_)) TUTTI_CHECK_OK(receive(move));
          break;
        case MoveKind::room:
          if (!slot_free(*move.lane)) TUTTI_CHECK_OK(await_room(move));
          break;
        case MoveKind::read: machine_.source(move.index, *move.base + move.offset); break;
        case MoveKind::write: machine_.target(move.index, *move.base + move.offset); break;
        case MoveKind::outgoing:
          machine_.target(move.index, machine_.stage(static_cast<std::uint32_t>(move.offset)));
          break;
        case MoveKind::slot:
        case MoveKind::back: machine_.target(move.index, slot_of(move.lane->view, move.lane->next)); break;
        case MoveKind::fold: machine_.fold(move.index, move.targets, move.bytes, move.fold); break;
        case MoveKind::copy: send(*move.lane, *move.base + move.offset, move.bytes); break;
        case MoveKind::send:
          send(*move.lane, machine_.stage(static_cast<std::uint32_t>(move.offset)), move.bytes);
          break;
        case MoveKind::post: simple_post(*move.lane, signature_, move.bytes); break;
        case MoveKind::take: take(*move.lane); break;
      }
    }
    return {};
  }

 private:
  // Both have just sent, and a message needs some 50 ns even between near cores. Who looks sooner takes the line from a
  // writer who has not written it yet, and both lose more than this takes: a hundred cycles.
  static void linger() {
    std::uint64_t value = 1;
    for (int i = 0; i < 32; ++i) {
      value *= 3;
      __asm__ volatile("" : "+r"(value));
    }
  }

  void send(LaneState& lane, const std::byte* data, std::uint64_t bytes) {
    send_ll(lane, signature_, data, bytes);
    count_message(lane);
  }

  [[gnu::noinline]] Status receive_ll(const Move& move) {
    Blocked blocked{.operand = move.operand, .lane = move.lane};
    std::byte* data = nullptr;
    for (;;) {
      const Progress progress =
          tutti::receive_ll(*move.lane, signature_, move.bytes, machine_.stage(move.index), data, blocked);
      if (progress == Progress::done) break;
      TUTTI_CHECK_OK(hooks_.await(blocked, progress));
    }
    machine_.source(move.index, data);
    return {};
  }

  [[gnu::noinline]] Status receive(const Move& move) {
    std::byte* data = nullptr;
    for (;;) {
      const Progress progress = receive_simple(*move.lane, signature_, data);
      if (progress == Progress::done) return {};
      TUTTI_CHECK_OK(hooks_.await(Blocked{.operand = move.operand, .lane = move.lane}, progress));
    }
  }

  [[gnu::noinline]] Status await_room(const Move& move) {
    do {
      TUTTI_CHECK_OK(
          hooks_.await(Blocked{.operand = move.operand, .lane = move.lane, .sends = true}, Progress::waiting));
    } while (!slot_free(*move.lane));
    return {};
  }

  const std::vector<Move>& moves_;
  const Signature signature_;
  CpuMachine& machine_;
  Hooks& hooks_;
};

}  // namespace tutti
