// One channel of one call, run by one thread block. The image is copied into the thread block's own memory and its
// addresses are filled in. The lane ends are copied there and written back at the end. Host and device compile this
// source.
#pragma once

#include "src/base/factor.h"
#include "src/executor/thread_block/backend.h"
#include "src/executor/thread_block/call.h"
#include "src/executor/thread_block/compression_rounding.h"
#include "src/executor/thread_block/image.h"

namespace tutti {

// Describes a buffer of this rank for peers.
TUTTI_HOST_DEVICE inline BufferLocation location_of(const KernelCall& call, const std::byte* buffer,
                                                    std::uint32_t window, std::uint32_t ranks) {
  if (window == kNotShown) return {};
  return {reinterpret_cast<std::uint64_t>(buffer) - call.exchange->windows[window * ranks + call.rank].base, window, 0};
}

// Finds the multicast addresses of the buffers that switches access. If there are none, the addresses of this rank
// replace them, from which offsets are counted; see fold_of_buffers(). Not inlined, since few calls need it.
TUTTI_HOST_DEVICE [[gnu::noinline]] inline void find_multicast(const KernelCall& call, Image& image,
                                                               RankBuffers& buffers) {
  const auto find = [&](std::byte*& buffer, std::uint32_t window) {
    std::byte* begin = window < kMaxWindows ? call.exchange->multicast[window] : nullptr;
    if (begin == nullptr) return store_relaxed(&image.uneven, 1U);
    buffer = begin + location_of(call, buffer, window, image.ranks).offset;
  };
  buffers.input = call.self.input;
  buffers.output = call.self.output;
  if (image.peer_input_bytes != 0) find(buffers.input, call.input_window);
  if (image.peer_output_bytes != 0) find(buffers.output, call.output_window);
}

// Notes whether a peer's buffers that switches access are at other places of the windows than those of this rank. Not
// inlined, like find_multicast().
TUTTI_HOST_DEVICE [[gnu::noinline]] inline void compare_places(const KernelCall& call, Image& image,
                                                               const AddressRecord& theirs) {
  const auto differs = [&](const std::byte* buffer, std::uint32_t window, const BufferLocation& other) {
    return other.window != window || other.offset != location_of(call, buffer, window, image.ranks).offset;
  };
  if ((image.peer_input_bytes != 0 && differs(call.self.input, call.input_window, theirs.input)) ||
      (image.peer_output_bytes != 0 && differs(call.self.output, call.output_window, theirs.output)))
    store_relaxed(&image.uneven, 1U);
}

template <typename ThreadBlock, typename Backend = ThreadBlockBackend<ThreadBlock>>
class Channel {
 public:
  // `memory`: ChannelLayout(image).bytes of the thread block's own, aligned to 16. `saved`: where to resume and
  // where to save progress; null: the call runs to its end.
  TUTTI_HOST_DEVICE Channel(const KernelCall& call, std::uint32_t channel, ThreadBlock thread_block, std::byte* memory,
                            ThreadBlockProgress* saved = nullptr)
      : call_(call),
        channel_(channel),
        thread_block_(thread_block),
        memory_(memory),
        saved_(saved),
        resumes_(saved != nullptr && saved->state == ThreadBlockState::suspended) {}

  // Returns `waiting` if stopped before the end; blocked() of some thread gives the reason.
  TUTTI_HOST_DEVICE Progress run() {
    const bool exchanges = call_.accesses_peers != 0;
    if (exchanges) announce_remote_access();
    load_lanes();
    copy(call_.image + std::size_t{channel_ % call_.images} * call_.image_bytes, memory_, call_.image_bytes);
    thread_block_.join();
    Image& image = *reinterpret_cast<Image*>(memory_);
    const ChannelLayout& layout = image.layout;
    // Both are slow, and other threads fill in addresses meanwhile.
    if (exchanges) publish_addresses(image);
    const bool too_late = exchanges && !may_access_peers(image);
    fill_in(image, layout);
    const Progress begins = exchanges ? exchange_addresses(image, layout, too_late) : join();
    const Progress progress = begins == Progress::done ? run_plan(image, layout) : begins;
    thread_block_.join();  // All accesses to peers' memory and all changes of lane ends precede it.
    if (exchanges) end_remote_access();
    if (progress == Progress::done) write_back_lanes(image, layout);
    return progress;
  }

  TUTTI_HOST_DEVICE const Blocked& blocked() const { return blocked_; }
  TUTTI_HOST_DEVICE std::uint32_t absent() const { return absent_; }  // The rank that missed an exchange.
  TUTTI_HOST_DEVICE const Cursor& cursor() const { return cursor_; }
  // This thread's result; run() returns the result of the whole thread block.
  TUTTI_HOST_DEVICE Progress own() const { return own_; }
  static constexpr std::uint32_t kNone = ~0U;

 private:
  TUTTI_HOST_DEVICE Progress join() {
    thread_block_.join();
    return Progress::done;
  }
  template <typename T>
  TUTTI_HOST_DEVICE T* at(std::uint32_t offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  template <typename T>
  TUTTI_HOST_DEVICE static std::uint64_t number(T* pointer) {
    return reinterpret_cast<std::uint64_t>(pointer);
  }

  TUTTI_HOST_DEVICE void copy(const std::byte* from, std::byte* to, std::uint32_t bytes) const {
    for (std::uint32_t i = thread_block_.thread(); i < bytes / sizeof(Pack); i += thread_block_.thread_count())
      reinterpret_cast<Pack*>(to)[i] = reinterpret_cast<const Pack*>(from)[i];
  }

  // Copies the lane ends behind the image, where ChannelLayout has them. The last threads do so, which have no part of
  // a small image: both copies wait for memory at the same time.
  TUTTI_HOST_DEVICE void load_lanes() {
    const std::uint32_t step = thread_block_.thread_count();
    for (std::uint32_t i = own_lane(); i < call_.lanes; i += step) {
      LaneState* end = call_.ends(channel_)[i];
      if (i == own_lane()) own_end_ = end;
      if (end != nullptr) at<LaneState>(call_.image_bytes)[i] = *end;
    }
  }

  // The first lane whose end this thread loads and writes back.
  TUTTI_HOST_DEVICE std::uint32_t own_lane() const { return thread_block_.thread_count() - 1 - thread_block_.thread(); }

  TUTTI_HOST_DEVICE std::byte* const* base(Image& image, const ChannelLayout& layout, std::uint64_t which) const {
    if (which == kBaseInput) return &image.launch.self.input;
    if (which == kBaseOutput) return &image.launch.self.output;
    if (which == kBaseScratch) return &image.launch.self.scratch;
    return at<std::byte*>(layout.peers) + (which - kBasePeers);
  }

  // Reads the scalar now, because earlier work in the stream may have written it.
  TUTTI_HOST_DEVICE static FoldTask with_scalar(FoldTask task) {
    if (task.scale_in_memory == 0) return task;
    const Factor factor = factor_of(task.type, reinterpret_cast<const void*>(task.integer_scale));
    task.scale = factor.scale;
    task.integer_scale = factor.integer_scale;
    return task;
  }

  // Each address is filled in by one thread.
  TUTTI_HOST_DEVICE void fill_in(Image& image, const ChannelLayout& layout) {
    const std::uint32_t first = thread_block_.thread();
    const std::uint32_t step = thread_block_.thread_count();
    auto* operands = at<Operand>(image.operands);
    auto* states = at<LaneState>(layout.states);
    for (std::uint32_t i = first; i < image.lane_count; i += step) {
      at<LaneState*>(layout.lanes)[i] = states + i;
      at<std::uint64_t>(layout.begins)[i] = states[i].next;
    }
    auto* lanes = at<StraightLane>(image.straight_lanes);
    for (std::uint32_t i = first; i < image.straight_lane_count; i += step) {
      lanes[i].lane = states + number(lanes[i].lane);
      lanes[i].operand = operands + number(lanes[i].operand);
    }
    auto* memory = at<StraightMemory>(image.straight_memory);
    for (std::uint32_t i = first; i < image.straight_memory_count; i += step) {
      memory[i].base = base(image, layout, number(memory[i].base));
      memory[i].operand = operands + number(memory[i].operand);
    }
    for (std::uint32_t i = first; i < image.ranks + image.by_switches && image.accesses_scratch != 0; i += step)
      at<RankBuffers>(layout.peers)[i].scratch = call_.exchange->scratch[i];
    if (first == 0) {
      *at<std::uint32_t>(layout.misaligned) = 0;
      image.task = with_scalar(call_.task);
    }
    if (first == step - 1) fill_in_launch(image, layout);
  }

  // By another thread than the task, at the same time.
  TUTTI_HOST_DEVICE void fill_in_launch(Image& image, const ChannelLayout& layout) {
    Launch& launch = image.launch;
    launch.self = call_.self;
    launch.signature = call_.signature;
    launch.channel = channel_;
    if ((image.accesses_peers | image.accesses_scratch) != 0) launch.peers = at<RankBuffers>(layout.peers);
    if (image.straight_stage_count == 0) return;
    launch.straight = {at<std::uint32_t>(image.straight_stages),
                       at<StraightStep>(image.straight_steps),
                       at<StraightLane>(image.straight_lanes),
                       at<StraightMemory>(image.straight_memory),
                       image.straight_stage_count,
                       image.straight_ll != 0};
  }

  // Locates a peer's buffer for this device. Returns false unless the `bytes` that the plan accesses lie within the
  // window.
  TUTTI_HOST_DEVICE static bool find(const WindowPart* parts, const BufferLocation& buffer, std::uint32_t ranks,
                                     std::uint64_t bytes, std::byte*& found) {
    if (buffer.window >= kMaxWindows) return false;
    const WindowPart& part = parts[buffer.window * ranks];
    found = reinterpret_cast<std::byte*>(part.base + buffer.offset);
    return buffer.offset <= part.bytes && bytes <= part.bytes - buffer.offset;
  }

  // Announces access to peers' memory. A failing rank sets its flag and then waits for announced accesses; a thread
  // block announces its access and then checks the flag. At least one of them detects the other, so a thread block that
  // finds the flag unset may access peers' memory until end_remote_access(), which follows in any case. Only peers'
  // buffers may be in use for something else after a failure: lanes, records and staging rings outlive it.
  TUTTI_HOST_DEVICE void announce_remote_access() const {
    if (announces()) store_relaxed(call_.exchange->remote_accesses->of(channel_), 1U);
  }
  // Returns false on the announcing thread if the communicator has failed, and stops the thread block.
  TUTTI_HOST_DEVICE bool may_access_peers(Image& image) const {
    if (!announces()) return true;
    full_fence();
    if (load_acquire(call_.exchange->failed->of(channel_)) == 0) return true;
    store_relaxed(&image.stop, Image::kTooLate);
    return false;
  }
  // After a barrier. By another thread than report_passed(), whose store to host memory need not wait for this one.
  TUTTI_HOST_DEVICE void end_remote_access() const {
    if (announces()) store_release(call_.exchange->remote_accesses->of(channel_), 0U);
  }

  // The threads that announce access and that publish addresses, in warps that have little else to do.
  TUTTI_HOST_DEVICE bool announces() const { return thread_block_.thread() == thread_block_.thread_count() / 2; }
  TUTTI_HOST_DEVICE bool publishes() const { return thread_block_.thread() == thread_block_.thread_count() / 4; }

  // The number of this exchange. When resuming, the records are still there.
  TUTTI_HOST_DEVICE std::uint64_t sequence() const { return call_.exchange->counts[channel_] + (resumes_ ? 0 : 1); }
  TUTTI_HOST_DEVICE std::uint64_t record(std::uint64_t sequence) const {
    return std::uint64_t{channel_} * 2 + sequence % 2;
  }

  // Publishes this rank's buffer addresses. Earlier work of the stream has ended, so that peers may access the buffers.
  TUTTI_HOST_DEVICE void publish_addresses(const Image& image) const {
    if (!publishes()) return;
    const std::uint64_t number = sequence();
    AddressRecord& own = call_.exchange->records[call_.rank][record(number)];
    if (saved_ != nullptr && load_relaxed(&own.sequence) == number) return;  // An earlier launch has done so.
    own.input = location_of(call_, call_.self.input, call_.input_window, image.ranks);
    own.output = location_of(call_, call_.self.output, call_.output_window, image.ranks);
    own.signature = call_.signature.word;
    store_release(&own.sequence, number);
  }

  // Reads the buffer addresses of the peers. All threads of the thread block agree on the result.
  TUTTI_HOST_DEVICE Progress exchange_addresses(Image& image, const ChannelLayout& layout, bool too_late) {
    const AddressExchange& exchange = *call_.exchange;
    const std::uint64_t number = sequence();
    Progress progress = Progress::done;
    for (std::uint32_t peer = thread_block_.thread(); peer < image.ranks && !too_late;
         peer += thread_block_.thread_count()) {
      const AddressRecord& theirs = exchange.records[peer][record(number)];
      const WindowPart* parts = exchange.windows + peer;
      RankBuffers& buffers = at<RankBuffers>(layout.peers)[peer];
      if (peer == call_.rank) {  // Not awaited: a timeout report would name this rank itself.
        buffers = call_.self;
        if (image.by_switches != 0) find_multicast(call_, image, at<RankBuffers>(layout.peers)[image.ranks]);
        continue;
      }
      progress = await_in(thread_block_, &image.stop, [&] {
        if (load_acquire(&theirs.sequence) != number) return Progress::waiting;
        const bool right = theirs.signature == call_.signature.word &&
                           find(parts, theirs.input, image.ranks, image.peer_input_bytes, buffers.input) &&
                           find(parts, theirs.output, image.ranks, image.peer_output_bytes, buffers.output);
        return right ? Progress::done : Progress::mismatch;
      });
      if (progress == Progress::done) {
        if (image.by_switches != 0) compare_places(call_, image, theirs);
        continue;
      }
      absent_ = peer;
      break;
    }
    own_ = progress;
    progress = thread_block_.agree(too_late ? Progress::waiting : progress);
    if (progress == Progress::done && thread_block_.thread() == 0) store_relaxed(&exchange.counts[channel_], number);
    // The failure is known, so nothing is reported.
    if (progress != Progress::done && load_relaxed(&image.stop) == Image::kTooLate) own_ = Progress::done;
    return progress;
  }

  TUTTI_HOST_DEVICE Progress run_plan(Image& image, const ChannelLayout& layout) {
    const bool straight = image.straight_stage_count > 0;
    const bool in_buffers = image.by_switches != 0 && image.accesses_peers != 0;
    const Program program = {.steps = straight ? nullptr : at<Instruction>(image.steps),
                             .operands = at<Operand>(image.operands),
                             .rounds = straight ? nullptr : at<std::uint32_t>(image.rounds),
                             .stages = straight ? nullptr : at<std::uint32_t>(image.stages),
                             .lanes = at<LaneState*>(layout.lanes),
                             .stage_count = image.stage_count,
                             .units = image.units,
                             .widest = image.widest};
    const KernelMemory memory = {.pointers = at<std::byte*>(layout.pointers),
                                 .sources = at<const std::byte*>(layout.sources),
                                 .targets = at<std::byte*>(layout.targets),
                                 .scaled = at<std::uint8_t>(layout.scaled),
                                 .marks = at<std::uint8_t>(layout.marks),
                                 .stage = at<std::byte>(layout.stages),
                                 .stage_bytes = image.stage_bytes,
                                 .stop = &image.stop,
                                 .misaligned = at<std::uint32_t>(layout.misaligned),
                                 .peers = in_buffers ? image.launch.peers : nullptr,
                                 .uneven = &image.uneven,
                                 .ranks = image.ranks};
    Interpreter<Backend> interpreter(program, image.launch, Backend(thread_block_, memory, image, call_),
                                     memory.pointers);
    if (resumes_) interpreter.resume(saved_->cursor, saved_->more != 0);
    const Progress progress = interpreter.advance();
    if (progress == Progress::done) interpreter.backend().end();
    if (progress == Progress::waiting && saved_ != nullptr) suspend(image, layout, interpreter);
    if (progress != Progress::done) {
      blocked_ = interpreter.blocked();
      cursor_ = interpreter.cursor();
      own_ = interpreter.backend().own();
    }
    return progress;
  }

  template <typename Interpreter>
  TUTTI_HOST_DEVICE void suspend(const Image& image, const ChannelLayout& layout, const Interpreter& interpreter) {
    write_back_lanes(image, layout);
    if (thread_block_.thread() != 0) return;
    saved_->cursor = interpreter.cursor();
    saved_->more = interpreter.more() ? 1 : 0;
    saved_->state = ThreadBlockState::suspended;
  }

  // Calls of a rank follow each other. A peer that has sent an LL message in this call has therefore taken all messages
  // of earlier calls. Its credits, which lie in its memory, need not be read for them. Not known in time slices.
  TUTTI_HOST_DEVICE bool credits_earlier_calls(const Image& image, const ChannelLayout& layout, std::uint32_t i) const {
    if (saved_ != nullptr) return false;
    const std::uint32_t answer = at<std::uint32_t>(image.answers)[i];
    return answer != kNoAnswer && at<LaneState>(layout.states)[answer].next != at<std::uint64_t>(layout.begins)[answer];
  }

  // Writes back the lane counters, after a barrier.
  TUTTI_HOST_DEVICE void write_back_lanes(const Image& image, const ChannelLayout& layout) {
    const auto* states = at<LaneState>(layout.states);
    const auto* begins = at<std::uint64_t>(layout.begins);
    for (std::uint32_t i = own_lane(); i < image.lane_count; i += thread_block_.thread_count()) {
      LaneState& end = i == own_lane() ? *own_end_ : *call_.ends(channel_)[i];
      const bool credited = states[i].seen < begins[i] && credits_earlier_calls(image, layout, i);
      end.next = states[i].next;
      end.seen = credited ? begins[i] : states[i].seen;
    }
  }

  const KernelCall& call_;
  const std::uint32_t channel_;
  ThreadBlock thread_block_;
  std::byte* memory_;
  ThreadBlockProgress* const saved_;
  const bool resumes_;
  Blocked blocked_;
  Cursor cursor_;
  LaneState* own_end_ = nullptr;  // The end of own_lane().
  std::uint32_t absent_ = kNone;
  Progress own_ = Progress::done;
};

}  // namespace tutti
