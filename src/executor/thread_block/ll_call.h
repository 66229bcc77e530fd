// One channel of a call of small messages, run by one thread block: a straight program of which all messages use LL. A
// kernel of its own has this code alone, because such a call spends most of its time on instructions. It runs the image
// of Channel and exchanges the same messages, so that a rank may run one call this way and the next one the other way,
// and its peers need not do as it does. Host and device compile this source.
//
// Threads fold words in registers as they arrive: a thread polls for word w of all messages of the step, folds, stores
// and sends it. A step therefore needs one barrier, or two if its lanes may be those of the next step.
#pragma once

#include "src/executor/thread_block/backend.h"
#include "src/executor/thread_block/batch.h"
#include "src/executor/thread_block/image.h"
#include "src/executor/thread_block/word_fold.h"

namespace tutti {

// The next message of a lane.
struct LlEnd {
  std::uintptr_t slot = 0;  // Address; bit 0 is set if a sender must wait for room.
  std::uint64_t flag = 0;

  TUTTI_HOST_DEVICE std::byte* memory() const { return reinterpret_cast<std::byte*>(slot & ~std::uintptr_t{1}); }
  TUTTI_HOST_DEVICE bool full() const { return (slot & 1) != 0; }
};
static_assert(sizeof(LlEnd) == LlLayout::kEndBytes);

template <typename ThreadBlock>
class LlCall {
 public:
  // `memory`: LlLayout(call.image_bytes, call.lanes).bytes of the thread block's own, aligned to 16.
  TUTTI_HOST_DEVICE LlCall(const KernelCall& call, std::uint32_t channel, ThreadBlock thread_block, std::byte* memory)
      : call_(call),
        layout_(call.image_bytes, call.lanes),
        channel_(channel),
        thread_block_(thread_block),
        memory_(memory) {}

  // Returns `waiting` if stopped before the end; blocked() of some thread gives the reason.
  TUTTI_HOST_DEVICE Progress run() {
    load_lanes();
    copy_image();
    thread_block_.join();
    const std::uint32_t end = at<std::uint32_t>(image().straight_stages)[1];
    TUTTI_ROLLED
    for (std::uint32_t chunk = 0; chunk < image().launch.loop.chunks; ++chunk) {
      const std::uint32_t part = chunk * image().launch.channels + channel_;
      TUTTI_ROLLED
      for (cursor_.step = 0; cursor_.step < end; ++cursor_.step) {
        const Progress progress = run_step(at<StraightStep>(image().straight_steps)[cursor_.step], part);
        if (progress != Progress::done) return progress;
      }
    }
    thread_block_.join();
    store_lanes();
    return Progress::done;
  }

  // These correspond to those of Channel.
  TUTTI_HOST_DEVICE const Blocked& blocked() const { return blocked_; }
  TUTTI_HOST_DEVICE const Cursor& cursor() const { return cursor_; }
  TUTTI_HOST_DEVICE Progress own() const { return own_; }
  TUTTI_HOST_DEVICE static constexpr std::uint32_t absent() { return kNone; }
  static constexpr std::uint32_t kNone = ~0U;

 private:
  // A step in one chunk.
  struct Piece {
    const StraightStep& step;
    const std::uint32_t part;
    const std::uint64_t bytes;
  };

  // A word that is awaited.
  struct Poll {
    const std::uint64_t* pair = nullptr;
    std::uint64_t expected = 0, found = 0;  // Flags. Equal: the word has arrived.
    TUTTI_HOST_DEVICE bool over() const { return found == expected; }
    TUTTI_HOST_DEVICE bool mismatch() const { return word_flag_mismatch(found, expected); }
  };

  template <typename T>
  TUTTI_HOST_DEVICE T* at(std::uint32_t offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  TUTTI_HOST_DEVICE Image& image() const { return *at<Image>(0); }
  TUTTI_HOST_DEVICE LaneState& state(std::uint32_t lane) const { return at<LaneState>(layout_.states)[lane]; }
  TUTTI_HOST_DEVICE LlEnd& end(std::uint32_t lane) const { return at<LlEnd>(layout_.ends)[lane]; }
  TUTTI_HOST_DEVICE std::uint64_t& begin(std::uint32_t lane) const { return at<std::uint64_t>(layout_.begins)[lane]; }

  // The lanes of a step: receiving ones, then sending ones. In an image, lanes and operands have numbers.
  TUTTI_HOST_DEVICE const StraightLane* lanes_of(const StraightStep& step) const {
    return at<StraightLane>(image().straight_lanes) + step.lanes;
  }
  TUTTI_HOST_DEVICE static std::uint32_t number_of(const StraightLane& lane) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(lane.lane));
  }
  TUTTI_HOST_DEVICE const StraightMemory& extent(const StraightStep& step, std::uint32_t k) const {
    return at<StraightMemory>(image().straight_memory)[step.memory + k];
  }
  // Address of extent `k` of the step in this chunk.
  TUTTI_HOST_DEVICE std::byte* memory_of(const Piece& piece, std::uint32_t k) const {
    const StraightMemory& memory = extent(piece.step, k);
    const auto base = reinterpret_cast<std::uint64_t>(memory.base);
    std::byte* const begin = base == kBaseInput    ? const_cast<std::byte*>(call_.self.input)
                             : base == kBaseOutput ? call_.self.output
                                                   : call_.self.scratch;
    return begin + memory.offset + piece.step.size * piece.part * image().launch.element_bytes;
  }

  // ---- Begin and end ----

  // The first lane whose end this thread loads and stores. The last threads have no part of a small image, so that both
  // copies wait for memory at the same time.
  TUTTI_HOST_DEVICE std::uint32_t own_lane() const { return thread_block_.thread_count() - 1 - thread_block_.thread(); }

  TUTTI_HOST_DEVICE void load_lanes() {
    TUTTI_ROLLED
    for (std::uint32_t i = own_lane(); i < call_.lanes; i += thread_block_.thread_count()) {
      LaneState* from = call_.ends(channel_)[i];
      if (i == own_lane()) own_end_ = from;
      if (from == nullptr) continue;
      state(i) = *from;
      begin(i) = state(i).next;
      prepare(i);
    }
  }

  TUTTI_HOST_DEVICE void copy_image() const {
    const std::byte* from = call_.image + std::size_t{channel_ % call_.images} * call_.image_bytes;
    TUTTI_ROLLED
    for (std::uint32_t i = thread_block_.thread() * kPackBytes; i < call_.image_bytes;
         i += thread_block_.thread_count() * kPackBytes)
      *at<Pack>(i) = load_unit<Pack>(from + i);
  }

  // Writes back the lane counters. A peer that has sent a message in this call has taken all messages of earlier calls;
  // see Channel::credits_earlier_calls().
  TUTTI_HOST_DEVICE void store_lanes() const {
    TUTTI_ROLLED
    for (std::uint32_t i = own_lane(); i < image().lane_count; i += thread_block_.thread_count()) {
      LaneState& to = i == own_lane() ? *own_end_ : *call_.ends(channel_)[i];
      const LaneState& lane = state(i);
      const std::uint32_t answer = at<std::uint32_t>(image().answers)[i];
      const bool answered = answer != kNoAnswer && state(answer).next != begin(answer);
      to.next = lane.next;
      to.seen = answered && lane.seen < begin(i) ? begin(i) : lane.seen;
    }
  }

  // ---- Lanes ----

  // Returns whether a message may be sent if the receiver has taken `taken`. These may include this message, if this
  // thread has none of its words.
  TUTTI_HOST_DEVICE static bool has_room(const LaneState& lane, std::uint64_t taken) {
    return lane.next < taken + (std::uint64_t{1} << lane.view.slot_shift);
  }

  // Prepares the next message of a lane.
  TUTTI_HOST_DEVICE void prepare(std::uint32_t i) const {
    const LaneState& lane = state(i);
    const auto slot = reinterpret_cast<std::uintptr_t>(slot_of(lane.view, lane.next));
    end(i) = {slot | (has_room(lane, lane.seen) ? 0U : 1U), word_flag(lane, call_.signature)};
  }

  // Credits of other hosts lie in host memory. One thread reads them while messages are in transit, before the lane is
  // full and all threads wait for them.
  TUTTI_HOST_DEVICE static bool runs_low(const LaneState& lane) {
    return lane.view.words != nullptr && lane.next - lane.seen >= std::uint64_t{1} << lane.view.slot_shift >> 1;
  }

  // Counts the messages of a step, after all threads have received and sent their words. See
  // ThreadBlockBackend::take_ll_message() for the order of credits.
  TUTTI_HOST_DEVICE void count_messages(const StraightStep& step, std::uint64_t bytes) const {
    TUTTI_ROLLED
    for (std::uint32_t k = thread_block_.thread(); k < std::uint32_t{step.receives} + step.sends;
         k += thread_block_.thread_count()) {
      const std::uint32_t i = number_of(lanes_of(step)[k]);
      LaneState& lane = state(i);
      if (k < step.receives) {
        store_relaxed(&lane.view.credits->taken, ++lane.next);
      } else {
        count_ll_words(lane, call_.signature, bytes);
        if (end(i).full() || runs_low(lane)) lane.seen = load_acquire(&lane.view.credits->taken);
      }
      prepare(i);
    }
  }

  TUTTI_HOST_DEVICE Progress block(const StraightLane& lane, bool sends, Progress progress) {
    blocked_.operand = at<Operand>(image().operands) + reinterpret_cast<std::uintptr_t>(lane.operand);
    blocked_.sends = sends;
    return progress;
  }

  // Waits for room on a lane that is full.
  TUTTI_HOST_DEVICE Progress await_room(const StraightLane& at) {
    const LaneState& lane = state(number_of(at));
    const Progress progress = await(
        [&] { return has_room(lane, load_acquire(&lane.view.credits->taken)) ? Progress::done : Progress::waiting; });
    return progress == Progress::done ? progress : block(at, true, progress);
  }

  template <typename Poll>
  TUTTI_HOST_DEVICE Progress await(Poll&& poll) {
    return await_in(thread_block_, &image().stop, poll);
  }

  // ---- Steps ----

  TUTTI_HOST_DEVICE Progress run_step(const StraightStep& step, std::uint32_t part) {
    const Launch& launch = image().launch;
    const std::uint64_t count = part_count(step.count, step.size, part);
    if (count == 0 && !launch.even_if_empty) return Progress::done;
    const Piece piece = {step, part, count * launch.element_bytes};
    own_ = step.outputs == 0  ? copy(piece)
           : step.inputs <= 2 ? fold<2>(piece)
           : step.inputs <= 4 ? fold<4>(piece)
                              : fold<kMaxLlInputs>(piece);
    const Progress progress = thread_block_.agree(own_);
    if (progress != Progress::done) return progress;
    count_messages(step, piece.bytes);
    if (image().ll == Image::kLlJoins) thread_block_.join();
    return Progress::done;
  }

  // Receives messages to memory, or sends some from memory, all at once.
  TUTTI_HOST_DEVICE Progress copy(const Piece& piece) {
    const StraightStep& step = piece.step;
    const bool sends = step.receives == 0;
    const std::uint32_t count = sends ? step.sends : step.receives;
    const MessagePart own = divide_among(thread_block_, count);
    if (own.threads.index >= ll_words_for(piece.bytes)) return Progress::done;
    TUTTI_ROLLED
    for (std::uint32_t k = own.first; k < count; k += own.step) {
      const StraightLane& lane = lanes_of(step)[k];
      const LlEnd next = end(number_of(lane));
      std::byte* const data = memory_of(piece, lane.index);
      Progress progress = Progress::done;
      if (sends) {
        if (next.full()) progress = await_room(lane);
        if (progress == Progress::done) ll_words_send(next.memory(), next.flag, data, piece.bytes, own.threads);
      } else {
        ll_words_receive(next.memory(), next.flag, data, piece.bytes, own.threads,
                         [&](auto&& poll) { return progress = await(poll); });
        if (progress != Progress::done) block(lane, false, progress);
      }
      if (progress != Progress::done) return progress;
    }
    return Progress::done;
  }

  // Folds the messages and at most one extent of memory, up to kInputs operands, and stores and sends the result.
  template <std::uint32_t kInputs>
  TUTTI_HOST_DEVICE Progress fold(const Piece& piece) {
    const StraightStep& step = piece.step;
    const std::uint64_t words = ll_words_for(piece.bytes);
    std::uint64_t w = thread_block_.thread();
    if (w >= words) return Progress::done;
    const WordFold fold(call_.task, step.inputs, step.fold == Fold::complete);
    const std::byte* const own = step.reads > 0 ? memory_of(piece, 0) : nullptr;
    const std::uint32_t own_index = step.reads > 0 ? extent(step, 0).index : kNone;
    TUTTI_ROLLED
    for (; w < words; w += thread_block_.thread_count()) {
      const std::uint64_t own_word = own == nullptr || piece.bytes == 0 ? 0 : load_word(own, piece.bytes, w);
      LlWords in;
      Progress progress = receive<kInputs>(step, w, own_index, own_word, in);
      if (progress != Progress::done) return progress;
      const std::uint64_t word = fold.result(in);
      TUTTI_ROLLED
      for (std::uint32_t k = 0; k < step.writes && piece.bytes > 0; ++k)
        store_word(memory_of(piece, step.reads + k), piece.bytes, w, word);
      progress = send(step, w, word);
      if (progress != Progress::done) return progress;
    }
    return Progress::done;
  }

  // Receives word `w` of all messages of a step; all polls are in flight at the same time. `own_index`: the operand
  // that is `own_word` instead of a message, or kNone.
  template <std::uint32_t kInputs>
  TUTTI_HOST_DEVICE Progress receive(const StraightStep& step, std::uint64_t w, std::uint32_t own_index,
                                     std::uint64_t own_word, LlWords& in) {
    Poll polls[kInputs];
    const StraightLane* lane = lanes_of(step);
    TUTTI_UNROLLED
    for (std::uint32_t i = 0; i < kInputs; ++i) {
      if (i >= step.inputs) break;
      if (i == own_index) {
        in.word[i] = own_word;
        continue;
      }
      const LlEnd& next = end(number_of(*lane++));
      polls[i] = {reinterpret_cast<const std::uint64_t*>(next.memory() + w * kWordBytes), next.flag, ~next.flag};
    }
    for (;;) {
      TUTTI_UNROLLED
      for (std::uint32_t i = 0; i < kInputs; ++i) {
        if (i >= step.inputs) break;
        if (!polls[i].over()) polls[i].found = receive_word(polls[i].pair, in.word[i]);
      }
      std::uint32_t missing = kNone;
      bool mismatch = false;
      TUTTI_UNROLLED
      for (std::uint32_t i = 0; i < kInputs; ++i) {
        if (i >= step.inputs) break;
        if (polls[i].over()) continue;
        if (missing == kNone || (polls[i].mismatch() && !mismatch)) missing = i;
        mismatch = mismatch || polls[i].mismatch();
      }
      if (missing == kNone) return Progress::done;
      if (mismatch) store_relaxed(&image().stop, 1U);
      if (mismatch || load_relaxed(&image().stop) != 0 || thread_block_.stopped()) {
        const StraightLane& awaited = lanes_of(step)[missing - (missing > own_index ? 1 : 0)];
        return block(awaited, false, mismatch ? Progress::mismatch : Progress::waiting);
      }
    }
  }

  // Sends word `w` to all receivers of the step.
  TUTTI_HOST_DEVICE Progress send(const StraightStep& step, std::uint64_t w, std::uint64_t word) {
    const StraightLane* const lanes = lanes_of(step) + step.receives;
    TUTTI_ROLLED
    for (std::uint32_t k = 0; k < step.sends; ++k) {
      const LlEnd& next = end(number_of(lanes[k]));
      const Progress progress = next.full() ? await_room(lanes[k]) : Progress::done;
      if (progress != Progress::done) return progress;
      send_word(next.memory(), w, word, next.flag);
    }
    return Progress::done;
  }

  const KernelCall& call_;
  const LlLayout layout_;
  const std::uint32_t channel_;
  ThreadBlock thread_block_;
  std::byte* const memory_;
  LaneState* own_end_ = nullptr;  // The end of own_lane().
  Blocked blocked_;
  Cursor cursor_;
  Progress own_ = Progress::done;
};

}  // namespace tutti
