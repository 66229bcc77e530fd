// The interpreter's Backend for thread i of a thread block: CUDA threads, or host threads in the GPU emulator. Lanes
// and operands are distributed over the threads; all threads take part in a fold.
//
//   ThreadBlock::thread(), thread_count()  index of this thread, and number of threads
//   ThreadBlock::slice(number)             thread that handles item `number`: number modulo thread_count()
//   ThreadBlock::part(halvings)            MessagePart of this thread, with groups of thread_count() >> halvings
//                                          threads
//   ThreadBlock::join()                    barrier with memory ordering
//   ThreadBlock::agree(progress)           barrier; returns done if all threads are done
//   ThreadBlock::stopped()                 true if waiting is pointless
//   ThreadBlock::too_late()                true if the communicator has failed; called by one thread, in time slices
#pragma once

#include <bit>

#include "src/executor/interpreter.h"
#include "src/executor/thread_block/call.h"
#include "src/executor/thread_block/fold.h"
#include "src/executor/thread_block/image.h"
#include "src/executor/thread_block/ll128.h"
#include "src/executor/thread_block/ll_words.h"

namespace tutti {

// Memory shared by the threads of a thread block; sized for the program.
struct KernelMemory {
  std::byte** pointers = nullptr;  // For the interpreter: 2 * widest.
  const std::byte** sources = nullptr;
  std::byte** targets = nullptr;
  std::uint8_t* scaled = nullptr;  // [source]
  std::uint8_t* marks = nullptr;   // A KernelRounding, then a CompressedOperand per source and per target.
  std::byte* stage = nullptr;      // widest + 1 messages.
  std::uint64_t stage_bytes = 0;   // Per message.
  std::uint32_t* stop = nullptr;
  // Number of the last fold or copy with an operand that is not aligned to a pack, counted from 1.
  std::uint32_t* misaligned = nullptr;
  // Steps by switches in buffers of the ranks: Launch::peers, and Image::uneven. Null: there are none.
  const RankBuffers* peers = nullptr;
  const std::uint32_t* uneven = nullptr;
  std::uint32_t ranks = 0;
};

// Polls until there is a result or waiting is pointless. On a mismatch it stops all threads of the thread block,
// because the messages they wait for may never arrive. `stop` is shared by the thread block.
template <typename ThreadBlock, typename Poll>
TUTTI_HOST_DEVICE Progress await_in(ThreadBlock& thread_block, std::uint32_t* stop, Poll&& poll) {
  for (;;) {
    const Progress progress = poll();
    if (progress == Progress::mismatch) store_relaxed(stop, 1U);
    if (progress != Progress::waiting || load_relaxed(stop) != 0 || thread_block.stopped()) return progress;
  }
}

// Divides the threads among `messages` messages or copies, so that all are in flight at once.
template <typename ThreadBlock>
TUTTI_HOST_DEVICE MessagePart divide_among(const ThreadBlock& thread_block, std::uint32_t messages) {
  const std::uint32_t threads = thread_block.thread_count();
  if (messages <= 1 || threads <= Ll128Threads::kThreads) return thread_block.part(0);
  const auto bits = static_cast<std::uint32_t>(std::bit_width(messages - 1));
  const auto max = static_cast<std::uint32_t>(std::bit_width(threads / Ll128Threads::kThreads)) - 1;
  return thread_block.part(bits < max ? bits : max);
}

// Not inlined, and with its own copy of the thread block: variables whose address escapes would be kept in memory.
template <typename ThreadBlock>
TUTTI_HOST_DEVICE [[gnu::noinline]] const std::uint64_t* receive_ll128(ThreadBlock thread_block, ThreadGroup threads,
                                                                       std::uint32_t* stop, const std::byte* slot,
                                                                       std::uint64_t flag, std::byte* to,
                                                                       std::uint64_t bytes) {
  return ll128_receive(slot, flag, to, bytes, threads.index, threads.count,
                       [&](auto&& poll) { return await_in(thread_block, stop, poll); });
}

// Sides of a step at multicast addresses.
constexpr bool from_all(Fold kind) {
  return kind == Fold::partial_from_all || kind == Fold::from_all || kind == Fold::among_all;
}
constexpr bool to_all(Fold kind) { return kind == Fold::to_all || kind == Fold::among_all; }
constexpr bool is_complete(Fold kind) {
  return kind == Fold::complete || (from_all(kind) && kind != Fold::partial_from_all);
}

// Bytes before the first pack at multicast addresses; all bytes if two such addresses are not congruent modulo a pack.
TUTTI_HOST_DEVICE inline std::uint64_t head_of_buffers(const std::byte* from, const std::byte* to, std::uint64_t bytes,
                                                       Fold kind) {
  const auto a = reinterpret_cast<std::uintptr_t>(from_all(kind) ? from : to);
  const auto b = reinterpret_cast<std::uintptr_t>(to_all(kind) ? to : from);
  const std::uint64_t head = (0 - a) % kPackBytes;
  return (a ^ b) % kPackBytes != 0 || head > bytes ? bytes : head;
}

// A step by switches in buffers of the ranks, whose source or target is a multicast address, or both. Switches serve
// whole packs there. The threads access the rest in the memory of each rank, or all of it if the buffers of the ranks
// are at different places of their windows. Sources at multicast addresses are inputs, whose sums are complete, and
// such targets outputs. Not inlined, like receive_ll128().
template <typename ThreadBlock>
TUTTI_HOST_DEVICE [[gnu::noinline]] void fold_of_buffers(ThreadBlock thread_block, const KernelMemory& memory,
                                                         const FoldTask& call, std::uint64_t count, Fold kind) {
  const ThreadGroup threads = {thread_block.thread(), thread_block.thread_count()};
  const bool sums = from_all(kind), spreads = to_all(kind);
  const std::uint64_t bytes = count * size_of(call.type);
  const std::byte* const from = memory.sources[0];
  std::byte* const to = memory.targets[0];
  const std::uint64_t head = load_relaxed(memory.uneven) != 0 ? bytes : head_of_buffers(from, to, bytes, kind);
  const std::uint64_t whole = (bytes - head) / kPackBytes * kPackBytes;
  if (whole > 0) thread_block_switch(call, {from + head, to + head, whole, sums, spreads, sums}, threads);
  FoldTask task = call;
  const FoldForm form = form_of(task.type, task.reduction);
  task.type = sums ? form.type : DataType::uint8;
  task.reduction = sums ? form.reduction : Reduction::sum;
  TUTTI_ROLLED
  for (std::uint64_t begin = 0, end = head; begin < bytes; begin = head + whole, end = bytes) {
    if (begin < end) {
      thread_block.join();  // All threads have read the addresses.
      const RankBuffers& all = memory.peers[memory.ranks];
      for (std::uint32_t rank = threads.index; rank < memory.ranks; rank += threads.count) {
        const RankBuffers& buffers = memory.peers[rank];
        if (sums) memory.sources[rank] = buffers.input + (from - all.input) + begin;
        if (spreads) memory.targets[rank] = buffers.output + (to - all.output) + begin;
      }
      if (threads.index == 0 && !sums) memory.sources[0] = from + begin;
      if (threads.index == 0 && !spreads) memory.targets[0] = to + begin;
      thread_block.join();
      const FoldOperands part = {.sources = memory.sources,
                                 .scaled = memory.scaled,
                                 .targets = memory.targets,
                                 .source_count = sums ? memory.ranks : 1,
                                 .target_count = spreads ? memory.ranks : 1,
                                 .count = (end - begin) / size_of(task.type),
                                 .complete = sums};
      thread_block_fold(task, part, threads);
    }
    if (end == bytes) break;
  }
}

template <typename ThreadBlock>
class ThreadBlockBackend {
 public:
  TUTTI_HOST_DEVICE ThreadBlockBackend(ThreadBlock thread_block, const KernelMemory& memory, const Image& image,
                                       const KernelCall&)
      : thread_block_(thread_block), memory_(memory), task_(image.task) {}
  TUTTI_HOST_DEVICE void end() {}

  TUTTI_HOST_DEVICE std::byte* stage(std::uint32_t operand) { return memory_.stage + operand * memory_.stage_bytes; }
  TUTTI_HOST_DEVICE bool plain() const { return task_.reduction != Reduction::pre_mul_sum; }

  TUTTI_HOST_DEVICE static constexpr bool stores_back(const LaneState&, std::uint64_t) { return false; }
  TUTTI_HOST_DEVICE bool serves(const LaneState* lane) const { return server_of(lane) == thread_block_.thread(); }
  TUTTI_HOST_DEVICE bool takes(std::uint32_t operand) const {
    return thread_block_.slice(operand) == thread_block_.thread();
  }
  template <typename Poll>
  TUTTI_HOST_DEVICE Progress await(Poll&& poll) {
    return await_in(thread_block_, memory_.stop, poll);
  }
  TUTTI_HOST_DEVICE Progress agree(Progress progress) {
    own_ = progress;
    return thread_block_.agree(progress);
  }
  TUTTI_HOST_DEVICE Progress own() const { return own_; }  // This thread's result at the last agree().
  TUTTI_HOST_DEVICE void join() { thread_block_.join(); }

  TUTTI_HOST_DEVICE MessagePart served(const LaneState* first) const {
    const std::uint32_t threads = thread_block_.thread_count();
    return {thread_block_.slice(thread_block_.thread() + threads - server_of(first)), threads, {}};
  }
  TUTTI_HOST_DEVICE MessagePart taken() const { return {thread_block_.thread(), thread_block_.thread_count(), {}}; }

  using Part = MessagePart;
  TUTTI_HOST_DEVICE Part part(std::uint32_t messages) const { return divide_among(thread_block_, messages); }

  TUTTI_HOST_DEVICE Progress receive_ll_message(const LaneState& lane, Signature signature, std::uint64_t bytes,
                                                const Part& part, std::byte*& data, Blocked& blocked) {
    const std::byte* slot = slot_of(lane.view, lane.next);
    Progress progress = Progress::done;
    if (lane.view.protocol == Protocol::ll128) {
      blocked.flag = line_flag(lane, signature);
      blocked.line = receive_ll128(thread_block_, part.threads, memory_.stop, slot, blocked.flag, data, bytes);
      return blocked.line == nullptr ? Progress::done : refused(blocked);
    }
    ll_words_receive(slot, word_flag(lane, signature), data, bytes, part.threads,
                     [&](auto&& poll) { return progress = await(poll); });
    return progress;
  }
  TUTTI_HOST_DEVICE void send_ll_message(const LaneState& lane, Signature signature, const std::byte* data,
                                         std::uint64_t bytes, const Part& part) {
    std::byte* slot = slot_of(lane.view, lane.next);
    if (lane.view.protocol == Protocol::ll128)
      ll128_send(slot, line_flag(lane, signature), data, bytes, part.threads.index, part.threads.count);
    else ll_words_send(slot, word_flag(lane, signature), data, bytes, part.threads);
  }
  // Consumes an LL message that all threads have read before a barrier. A release would be a fence: the writer's next
  // store to the slot cannot reach loads whose values were used before this store.
  TUTTI_HOST_DEVICE static void take_ll_message(LaneState& lane) {
    ++lane.next;
    if (lane.view.credits != nullptr) store_relaxed(&lane.view.credits->taken, lane.next);
  }

  TUTTI_HOST_DEVICE static void count_ll_message(LaneState& lane, Signature signature, std::uint64_t bytes) {
    count_ll_words(lane, signature, bytes);
  }

  TUTTI_HOST_DEVICE void source(std::uint32_t index, std::byte* pointer) {
    add(memory_.sources, index, pointer);
    memory_.scaled[index] = 0;
  }
  TUTTI_HOST_DEVICE void source(std::uint32_t index, std::byte* pointer, const Operand& operand) {
    add(memory_.sources, index, pointer);
    memory_.scaled[index] = operand.space == Space::input;
  }
  TUTTI_HOST_DEVICE void target(std::uint32_t index, std::byte* pointer) { add(memory_.targets, index, pointer); }
  TUTTI_HOST_DEVICE void target(std::uint32_t index, std::byte* pointer, const Operand&) { target(index, pointer); }

  // `folds` folds, whose operands follow each other. All scale the same ones.
  TUTTI_HOST_DEVICE void fold(std::uint32_t sources, std::uint32_t targets, std::uint64_t count, Fold kind,
                              std::uint32_t folds = 1) {
    const bool aligned = next_is_aligned();
    if (by_switches(kind) && memory_.peers != nullptr)
      return fold_of_buffers(thread_block_, memory_, task_, count, kind);
    FoldOperands all = operands(sources, targets, count, kind);
    all.aligned = aligned;
    TUTTI_ROLLED
    for (std::uint32_t k = 0; k < folds; ++k) {
      thread_block_fold(task_, all, threads());
      all.sources += sources;
      all.targets += targets;
    }
  }
  // Switches, by `kind`, add or store one operand after the other.
  TUTTI_HOST_DEVICE void copy(std::uint32_t count, std::uint64_t bytes, Fold kind) {
    FoldOperands operands = {.source_count = 1, .target_count = 1, .aligned = next_is_aligned()};
    if (by_switches(kind)) {
      TUTTI_ROLLED
      for (std::uint32_t k = 0; k < count; ++k)
        thread_block_switch(
            task_, {memory_.sources[k], memory_.targets[k], bytes, from_all(kind), to_all(kind), is_complete(kind)},
            threads());
      return;
    }
    const Part own = part(count);
    for (std::uint32_t k = own.first; k < count; k += own.step) {
      operands.sources = memory_.sources + k;
      operands.targets = memory_.targets + k;
      thread_block_copy(operands, bytes, own.threads);
    }
  }

 protected:
  TUTTI_HOST_DEVICE const FoldTask& task() const { return task_; }
  TUTTI_HOST_DEVICE ThreadGroup threads() const { return {thread_block_.thread(), thread_block_.thread_count()}; }
  TUTTI_HOST_DEVICE FoldOperands operands(std::uint32_t sources, std::uint32_t targets, std::uint64_t count,
                                          Fold kind) const {
    return {.sources = memory_.sources,
            .scaled = memory_.scaled,
            .targets = memory_.targets,
            .source_count = sources,
            .target_count = targets,
            .count = count,
            .complete = is_complete(kind),
            .from_all = from_all(kind),
            .to_all = to_all(kind)};
  }

 private:
  template <typename Pointer>
  TUTTI_HOST_DEVICE void add(Pointer* list, std::uint32_t index, std::byte* pointer) {
    list[index] = pointer;
    if (reinterpret_cast<std::uintptr_t>(pointer) % kPackBytes != 0) store_relaxed(memory_.misaligned, folds_ + 1);
  }
  // Call once per fold or copy, after a barrier that follows its operands.
  TUTTI_HOST_DEVICE bool next_is_aligned() { return load_relaxed(memory_.misaligned) != ++folds_; }

  TUTTI_HOST_DEVICE std::uint32_t server_of(const LaneState* lane) const {
    return thread_block_.slice(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(lane) / sizeof(LaneState)));
  }
  // Result of a wait that was stopped or refused.
  TUTTI_HOST_DEVICE static Progress refused(const Blocked& blocked) {
    return flag_mismatch(blocked.line, blocked.flag) ? Progress::mismatch : Progress::waiting;
  }

  ThreadBlock thread_block_;
  const KernelMemory& memory_;
  const FoldTask& task_;
  Progress own_ = Progress::done;
  std::uint32_t folds_ = 0;  // Folds and copies so far, the same on all threads.
};

}  // namespace tutti
