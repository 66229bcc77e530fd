// A straight program that runs in one chunk, compiled to a list of moves. Everything that is constant between calls is
// resolved beforehand. BriefRun executes it in the calling thread and blocks in place; it keeps no state to resume. The
// moves have the semantics of StraightRun, so a call may be run by either.
#pragma once

#include <vector>

#include "src/base/status.h"
#include "src/executor/cpu/backend.h"

namespace tutti {

enum class MoveKind : std::uint8_t {
  look,             // Precedes the first move that may block.
  pause_for_reply,  // Gives the peer time to answer.
  line,             // Receives an LL message of one line,
  ll,               // an LL message of several lines,
  message,          // a Simple message in a slot,
  flag,             // or a flag.
  room,             // Waits for a free slot.
  read,             // Sets source `index` of the fold to memory.
  write,            // Sets target `index` of the fold to memory,
  outgoing,         // to the staging buffer of an LL message,
  slot,             // to the next slot,
  back,             // or to the slot of the received message.
  fold,             // Runs the fold; `bytes` counts elements.
  copy,             // Sends an LL message from memory,
  send,             // or from its staging buffer.
  post,             // Posts the slot of a Simple message, or a flag.
  take              // Frees the slot of a received message.
};

struct Move {
  MoveKind kind = MoveKind::look;
  Fold fold = Fold::partial;
  std::uint16_t index = 0;    // Source or target index. fold: number of sources.
  std::uint16_t targets = 0;  // fold: number of targets.
  LaneState* lane = nullptr;
  const Operand* operand = nullptr;  // Operand of the lane.
  std::byte* const* base = nullptr;  // Where the buffer address is stored.
  std::uint64_t offset = 0;          // Offset from the buffer address.
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Move) == 48);

// Compiles a launch. Returns an empty list if the program is not straight, has several chunks, or has steps without
// data. `outgoing` is the index of the backend's staging buffer for LL messages that are assembled by a fold.
std::vector<Move> brief(const Launch& launch, std::uint32_t outgoing);

// Runs a list of moves. Hooks provides look() and `Status await(const Blocked&, Progress)`. await() returns when the
// peer has made progress, or fails. The Progress argument is `mismatch` if the received message belongs to another
// call. The backend must be plain().
template <typename Hooks>
class BriefRun {
 public:
  BriefRun(const std::vector<Move>& moves, Signature signature, CpuBackend& backend, Hooks& hooks)
      : moves_(moves), signature_(signature), backend_(backend), hooks_(hooks) {}

  Status run() {
    for (const Move& move : moves_) {
      switch (move.kind) {
        case MoveKind::look: hooks_.look(); break;
        case MoveKind::pause_for_reply: pause_for_reply(); break;
        case MoveKind::line: {
          const std::byte* const line = slot_of(move.lane->view, move.lane->next);
          if (load_acquire(flag_of(line)) != line_flag(*move.lane, signature_)) TUTTI_CHECK_OK(receive_ll(move));
          backend_.source(move.index, const_cast<std::byte*>(line) + line_begin(move.bytes));
          break;
        }
        case MoveKind::ll: TUTTI_CHECK_OK(receive_ll(move)); break;
        case MoveKind::message:
          if (!simple_arrived(*move.lane) || !simple_matches(*move.lane, signature_)) TUTTI_CHECK_OK(receive(move));
          backend_.source(move.index, slot_of(move.lane->view, move.lane->next));
          break;
        case MoveKind::flag:
          if (!simple_arrived(*move.lane) || !simple_matches(*move.lane, signature_)) TUTTI_CHECK_OK(receive(move));
          break;
        case MoveKind::room:
          if (!slot_free(*move.lane)) TUTTI_CHECK_OK(await_room(move));
          break;
        case MoveKind::read: backend_.source(move.index, *move.base + move.offset); break;
        case MoveKind::write: backend_.target(move.index, *move.base + move.offset); break;
        case MoveKind::outgoing:
          backend_.target(move.index, backend_.stage(static_cast<std::uint32_t>(move.offset)));
          break;
        case MoveKind::slot:
        case MoveKind::back: backend_.target(move.index, slot_of(move.lane->view, move.lane->next)); break;
        case MoveKind::fold: backend_.fold(move.index, move.targets, move.bytes, move.fold); break;
        case MoveKind::copy: send(*move.lane, *move.base + move.offset, move.bytes); break;
        case MoveKind::send:
          send(*move.lane, backend_.stage(static_cast<std::uint32_t>(move.offset)), move.bytes);
          break;
        case MoveKind::post: simple_post(*move.lane, signature_, move.bytes); break;
        case MoveKind::take: take(*move.lane); break;
      }
    }
    return {};
  }

 private:
  // Both ranks have just sent, and a message takes about 50 ns even between adjacent cores. Polling earlier would take
  // the cache line from the writer before it has written. Both ranks would lose more than this wait of less than a
  // hundred cycles. The checks for sleeping ranks since the send are part of the wait.
  static void pause_for_reply() {
    std::uint64_t value = 1;
    for (int i = 0; i < 28; ++i) {
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
          tutti::receive_ll(*move.lane, signature_, move.bytes, backend_.stage(move.index), data, blocked);
      if (progress == Progress::done) break;
      TUTTI_CHECK_OK(hooks_.await(blocked, progress));
    }
    backend_.source(move.index, data);
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
  CpuBackend& backend_;
  Hooks& hooks_;
};

}  // namespace tutti
