#include "tools/simulator/engine.h"

#include <algorithm>
#include <span>

#include "tools/simulator/ends.h"
#include "tools/simulator/nccl_protocol.h"
#include "tools/simulator/simulated_lanes.h"

namespace tutti::simulator {
namespace {

struct alignas(32) RankState {
  double free_us = 0;
  double stored_us = 0;  // Time at which all its writes to peers' memory have arrived.
  Chain chain;           // Up to free_us.
  std::uint32_t step = 0, stage_end = 0;
  std::uint32_t iteration = 0, position = 0, chunk = 0;
  std::uint32_t waits_for = kNone;  // Lane for which the rank waits.
  std::uint32_t slice = 0;          // Slice of a step in peers' memory.
  std::uint32_t part = 0;           // Part of any other step.
  bool done = false;
};

class Engine {
 public:
  Engine(const Program& program, const Network& network, const EngineRequest& request)
      : program_(program),
        request_(request),
        timeline_(request.jitter, request.seed),
        network_ranks_(network.ranks()),
        heads_(std::min(network.ranks(), kMaxNvlsHeads)),
        lanes_(program, network, request, timeline_),
        step_us_(request.costs.step_us[static_cast<std::size_t>(request.protocol)]),
        message_us_(request.costs.message_us[static_cast<std::size_t>(request.protocol)]),
        us_per_byte_(
            1e-3 / (request.costs.channel_gbytes_per_s[static_cast<std::size_t>(request.protocol)] * request.channels)),
        fold_us_per_byte_(
            request.costs.fold_gbytes_per_s > 0 ? 1e-3 / (request.costs.fold_gbytes_per_s * request.channels) : 0),
        awaits_stores_(request.costs.awaits_stores && request.protocol == Protocol::simple),
        ranks_(program.classes()) {
    result_.chunk_us.resize(request.chunks);
    const Loop& loop = request.loop;
    iterations_ = request.chunks + loop.skew * (program.stage_count - 1);
    reversed_ = loop.skew > 0 && loop.order == StageOrder::latest_first;
  }

  Result<EngineResult> run() {
    const double begin = request_.costs.base_us[static_cast<std::size_t>(request_.protocol)];
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      RankState& state = ranks_[rank];
      state.free_us = begin;
      state.chain.launch = static_cast<float>(begin);
      if (enter_first(rank)) timeline_.wake(rank, begin);
      else finish(rank);
    }
    EventQueue& queue = timeline_.queue;
    while (!queue.empty()) {
      const Event event = queue.pop();
      prefetch(queue);
      timeline_.now = event.time;
      if (!is_message(event)) {
        advance(event.subject);
        continue;
      }
      lanes_.enter_receiver(message_of(event));
      ++result_.events;
    }
    if (done_ < ranks_.size()) return deadlock();
    result_.links = lanes_.uses();
    result_.data_bytes = lanes_.data_bytes();
    return std::move(result_);
  }

 private:
  // ---- The loop ----

  std::uint32_t stage_of(const RankState& state) const {
    return reversed_ ? program_.stage_count - 1 - state.position : state.position;
  }

  // Returns false if the stage has no chunk in this iteration, or no step.
  bool enter_stage(std::uint32_t rank) {
    RankState& state = ranks_[rank];
    const std::uint32_t stage = stage_of(state);
    const std::uint32_t behind = request_.loop.skew * stage;
    if (state.iteration < behind || state.iteration - behind >= request_.chunks) return false;
    const std::uint32_t* const stages = &program_.stages[std::size_t{rank} * (program_.stage_count + 1)];
    state.chunk = state.iteration - behind;
    state.step = stages[stage];
    state.stage_end = stages[stage + 1];
    if (state.step < state.stage_end) return true;
    leave_stage(state);
    return false;
  }

  void leave_stage(const RankState& state) {
    double& done = result_.chunk_us[state.chunk];
    if (stage_of(state) + 1 == program_.stage_count) done = std::max(done, state.free_us);
  }

  bool next_stage(std::uint32_t rank) {
    RankState& state = ranks_[rank];
    do {
      if (++state.position == program_.stage_count) {
        state.position = 0;
        if (++state.iteration == iterations_) return false;
      }
    } while (!enter_stage(rank));
    return true;
  }

  bool enter_first(std::uint32_t rank) { return iterations_ > 0 && (enter_stage(rank) || next_stage(rank)); }

  void finish(std::uint32_t rank) {
    RankState& state = ranks_[rank];
    state.done = true;
    ++done_;
    if (state.free_us < result_.time_us) return;
    result_.time_us = state.free_us;
    result_.chain = state.chain;
    result_.last = program_.symmetry.representative_of_class(rank) % network_ranks_;
  }

  // ---- A step ----

  // Cause and end of the wait of a step.
  struct Ready {
    double us = 0;
    const Chain* chain = nullptr;  // Null: the rank's own chain, followed by a wait for a slot.
    bool known = true;
  };

  // Prefetches data of the next events step by step: data that a pointer locates is prefetched some events after the
  // pointer.
  void prefetch(const EventQueue& queue) const {
    constexpr std::size_t kSubject = 14, kStep = 11, kEnds = 8, kLanes = 5, kMessages = 2;  // Events ahead.
    if (const Event* event = queue.ahead(kSubject)) {
      if (is_message(*event)) lanes_.prefetch(message_of(*event));
      else prefetch_rank(event->subject);
    }
    if (const Event* event = queue.ahead(kStep)) {
      if (is_message(*event)) lanes_.prefetch_lane_of(message_of(*event));
      else __builtin_prefetch(&step_of(*event));
    }
    if (const Event* event = queue.ahead(kEnds)) {
      if (is_message(*event)) lanes_.prefetch_links_of(message_of(*event));
      else __builtin_prefetch(program_.ends.data() + step_of(*event).first);
    }
    const Event* event = queue.ahead(kLanes);
    if (event != nullptr && !is_message(*event))
      for (const End end : next_ends(*event)) lanes_.prefetch_lane(end.lane());
    event = queue.ahead(kMessages);
    if (event != nullptr && !is_message(*event))
      for (const End end : next_ends(*event)) lanes_.prefetch_next(end);
  }

  void prefetch_rank(std::uint32_t rank) const {
    __builtin_prefetch(&ranks_[rank]);
    __builtin_prefetch(&ranks_[rank].step);
  }
  static bool is_message(const Event& event) { return (event.subject & kMessageBit) != 0; }
  static std::uint32_t message_of(const Event& event) { return event.subject & ~kMessageBit; }
  const TimedStep& step_of(const Event& event) const { return program_.steps[ranks_[event.subject].step]; }
  // Ends of the rank's step and of the next one, if they have few.
  std::span<const End> next_ends(const Event& event) const {
    constexpr std::size_t kMax = 4;
    const std::size_t first = step_of(event).first;
    return std::span(program_.ends).subspan(first, std::min(kMax, program_.ends.size() - first));
  }

  // Runs the rank's step if it is ready. Schedules the next event of the rank if its time is known.
  void advance(std::uint32_t rank) {
    RankState& state = ranks_[rank];
    const TimedStep& step = program_.steps[state.step];
    const Ready ready = await(rank, step);
    if (!ready.known) return;
    if (ready.us > timeline_.now) return timeline_.wake(rank, ready.us);
    Chain chain = chain_to(state, ready);
    const double end = perform(rank, step, chain);
    state.chain = chain;
    settle(state, end);
    if (state.slice > 0) return timeline_.wake(rank, end);
    if (++state.part < request_.parts) return timeline_.wake(rank, end);
    state.part = 0;
    if (++state.step == state.stage_end) {
      leave_stage(state);
      if (!next_stage(rank)) return finish(rank);
    }
    const Ready next = await(rank, program_.steps[state.step]);
    if (next.known) timeline_.wake(rank, next.us);
  }

  Chain chain_to(const RankState& state, const Ready& ready) const {
    Chain chain = ready.chain == nullptr ? state.chain : *ready.chain;
    if (ready.chain == nullptr) chain.slots += static_cast<float>(ready.us - state.free_us);
    return chain;
  }

  Ready await(std::uint32_t rank, const TimedStep& step) {
    RankState& state = ranks_[rank];
    Ready ready{.us = state.free_us, .chain = &state.chain, .known = true};
    if (state.slice > 0) return ready;
    for (std::uint32_t i = step.first; i < step.first + step.sources + step.targets; ++i) {
      const End end = program_.ends[i];
      const bool receives = end.kind() == EndKind::receive || end.kind() == EndKind::await;
      if (!receives && end.kind() != EndKind::send) continue;
      const SimulatedLanes::Promise promise = receives ? lanes_.next(end.lane(), rank) : lanes_.slot(end.lane(), rank);
      if (!promise.known) {
        state.waits_for = end.lane();
        ready.known = false;
        return ready;
      }
      if (promise.us <= ready.us) continue;
      ready = {.us = promise.us, .chain = promise.chain, .known = true};
    }
    return ready;
  }

  // Runs the step and returns the time at which the channel is free again.
  double perform(std::uint32_t rank, const TimedStep& step, Chain& chain) {
    RankState& state = ranks_[rank];
    const auto [in, out, mapped, sent] = ends_of(program_, step);
    const double whole = step.units * request_.unit_bytes / request_.parts;
    const double bytes = whole * request_.compressed_part;
    if (by_switches(step) && !program_.names_all) return perform_by_switches(rank, step, chain, bytes * (in + out));
    const std::uint32_t loads = step.gathered ? 1 : in, stores = step.spread ? 1 : out;
    if (mapped > 0) return perform_mapped(rank, step, chain, bytes * std::max(loads, stores));
    const double copied = bytes * std::max({in, out, 1U});
    const double folded = step.folds ? bytes * in : 0;
    double end = timeline_.now + timeline_.jittered(step_us_ + message_us_ * (in + out) + copied * us_per_byte_ +
                                                    folded * fold_us_per_byte_ + whole * coding_us(step));
    double passed = end;
    const End* const ends = program_.ends.data() + step.first;
    for (std::uint32_t i = 0; i < step.sources; ++i) lanes_.take(ends[i], end);
    for (std::uint32_t i = step.sources; i < std::uint32_t{step.sources} + step.targets; ++i) {
      if (ends[i].kind() == EndKind::send) passed = std::max(passed, lanes_.send(ends[i].lane(), bytes, end, chain));
      else lanes_.signal(ends[i].lane(), end, state.stored_us, chain);
    }
    if (awaits_stores_ && state.chunk == 0) end = std::max(end, passed);
    trace(rank, state.chunk, end, bytes);
    ++result_.events;
    return end;
  }

  // Returns the time to encode and decode, per byte of data.
  double coding_us(const TimedStep& step) const {
    if (request_.encode_us == 0 && request_.decode_us == 0) return 0;
    const End* const ends = program_.ends.data() + step.first;
    const auto is = [](EndKind kind) { return [kind](End end) { return end.kind() == kind; }; };
    const auto received = std::count_if(ends, ends + step.sources, is(EndKind::receive));
    const bool sends = std::any_of(ends + step.sources, ends + step.sources + step.targets, is(EndKind::send));
    const bool encodes = sends && (received == 0 || step.folds);
    return (encodes ? request_.encode_us : 0) + static_cast<double>(received) * request_.decode_us;
  }

  // Slice of a step in peers' memory.
  struct Slice {
    double bytes = 0;
    bool last = false;
    double free = 0, end = 0;  // Times at which the channel was free, and at which the data it read had arrived.
    Chain read;                // Chain up to `end`. settle() and signals add the whole slice to the channel's time, so
  };                           // waits are subtracted from it here.

  // Runs a slice of a step in peers' memory. The first slice receives from lanes and flags; the last one sends and
  // signals.
  double perform_mapped(std::uint32_t rank, const TimedStep& step, Chain& chain, double moved_bytes) {
    RankState& state = ranks_[rank];
    const std::uint32_t slices = slices_of(step, request_);
    const double busy = (state.slice == 0 ? step_us_ : 0) + moved_bytes / slices * us_per_byte_;
    const double free = timeline_.now + timeline_.jittered(busy);
    Slice slice{.bytes = step.units * request_.unit_bytes / slices,
                .last = state.slice + 1 == slices,
                .free = free,
                .end = free,
                .read = chain};
    const std::span<const End> sources(program_.ends.data() + step.first, step.sources);
    const std::span<const End> targets(sources.data() + sources.size(), step.targets);
    const double sum_us = step.gathered ? lanes_.gather(sources, slice.bytes) : 0;
    for (const End source : sources) {
      if (source.kind() == EndKind::read)
        await_read(slice, chain, source, step.gathered ? sum_us : lanes_.transfer(source.lane(), slice.bytes));
      else if (state.slice == 0) lanes_.take(source, free);
    }
    if (step.spread) state.stored_us = std::max({state.stored_us, slice.end, lanes_.spread(targets, slice.bytes)});
    for (const End target : targets)
      if (target.kind() == EndKind::write && !step.spread)
        state.stored_us = std::max({state.stored_us, slice.end, lanes_.transfer(target.lane(), slice.bytes)});
    return leave_slice(rank, step, slice, chain);
  }

  // Runs a slice of a step by switches: one chunk per head, which the switches reduce or distribute. Copies overlap
  // with transfers of other chunks, except the copy in of the first slice and the copy out of the last one.
  double perform_by_switches(std::uint32_t rank, const TimedStep& step, Chain& chain, double copied_bytes) {
    RankState& state = ranks_[rank];
    const std::uint32_t chunks = slices_of(step, request_);
    const bool first = state.slice == 0, last = state.slice == chunks;
    const double waits_us = first ? 0 : heads_ * request_.costs.multicast_us;
    const double copy_us = timeline_.jittered(waits_us + copied_bytes / chunks * us_per_byte_);
    const double free = timeline_.now + (last ? 0 : copy_us);
    Slice slice{
        .bytes = step.units * request_.unit_bytes / chunks, .last = last, .free = free, .end = free, .read = chain};
    const std::span<const End> sources(program_.ends.data() + step.first, step.sources);
    const std::span<const End> targets(sources.data() + sources.size(), step.targets);
    const double sum_us = !first && step.gathered ? lanes_.gather(sources, slice.bytes) : 0;
    for (const End source : sources) {
      if (source.kind() == EndKind::read) await_read(slice, chain, source, sum_us);
      else if (first) lanes_.take(source, free);
    }
    if (!first && step.spread)
      state.stored_us = std::max({state.stored_us, slice.end, lanes_.spread(targets, slice.bytes)});
    if (last) {
      slice.end += copy_us;
      state.stored_us += copy_us;
    }
    return leave_slice(rank, step, slice, chain);
  }

  // Accounts for the arrival of data that a slice reads. Further slices are requested before the data arrives.
  void await_read(Slice& slice, const Chain& chain, End source, double carried_us) const {
    const std::uint32_t lane = source.lane();
    const double arrival = carried_us + (slice.last ? 2 * lanes_.latency_us(lane) : 0);
    if (arrival <= slice.end) return;
    const double carried = std::max(carried_us - slice.free, 0.0);
    slice.end = arrival;
    slice.read = chain;
    slice.read.links[static_cast<std::size_t>(lanes_.narrowest(lane))] += static_cast<float>(carried);
    slice.read.hops += static_cast<float>(arrival - slice.free - carried);
    slice.read.channel -= static_cast<float>(arrival - slice.free);
  }

  // Completes the slice and returns the time at which the channel is free again.
  double leave_slice(std::uint32_t rank, const TimedStep& step, const Slice& slice, Chain& chain) {
    RankState& state = ranks_[rank];
    const std::span<const End> targets(program_.ends.data() + step.first + step.sources, step.targets);
    for (const End target : targets) {
      if (!slice.last) break;
      if (target.kind() == EndKind::send)
        lanes_.send(target.lane(), step.units * request_.unit_bytes, slice.end, chain);
      if (target.kind() == EndKind::signal) lanes_.signal(target.lane(), slice.end, state.stored_us, slice.read);
    }
    chain = slice.read;
    state.slice = slice.last ? 0 : state.slice + 1;
    trace(rank, state.chunk, slice.end, slice.bytes);
    ++result_.events;
    return slice.end;
  }

  // Adds the time until `end` to the channel's time: it was busy, or waited for data that it read.
  void settle(RankState& state, double end) {
    state.chain.channel += static_cast<float>(end - timeline_.now);
    state.free_us = end;
  }

  void trace(std::uint32_t rank, std::uint32_t chunk, double end, double bytes) {
    if (request_.trace == nullptr || request_.trace->size() >= request_.max_traced) return;
    request_.trace->push_back(
        {false, program_.symmetry.representative_of_class(rank), chunk, timeline_.now, end, bytes});
  }

  Status deadlock() const {
    std::string who;
    std::uint32_t reported = 0;
    for (std::uint32_t rank = 0; rank < ranks_.size() && reported < 4; ++rank) {
      const RankState& state = ranks_[rank];
      if (state.done || state.waits_for == kNone) continue;
      const LaneLinks& links = program_.lanes[state.waits_for];
      const bool reads = lanes_.reader_waits(state.waits_for, rank);
      who += (reported++ == 0 ? "" : ", ") + std::string("rank ") +
             std::to_string(program_.symmetry.representative_of_class(rank) % network_ranks_) +
             (reads ? " for a message from rank " : " for a slot to rank ") +
             std::to_string((reads ? links.from : links.to) % network_ranks_);
    }
    return internal_error(std::to_string(ranks_.size() - done_) + " ranks are deadlocked: " + who);
  }

  const Program& program_;
  const EngineRequest& request_;
  Timeline timeline_;
  const Rank network_ranks_;  // Higher numbers are the same ranks in other orders.
  const double heads_;        // Number of ranks that fold for all if switches reduce.
  SimulatedLanes lanes_;
  const double step_us_, message_us_;
  const double us_per_byte_, fold_us_per_byte_;
  const bool awaits_stores_;
  std::vector<RankState> ranks_;
  EngineResult result_;
  std::uint32_t iterations_ = 0;
  std::size_t done_ = 0;
  bool reversed_ = false;
};

}  // namespace

Result<EngineResult> run_engine(const Program& program, const Network& network, const EngineRequest& request) {
  return Engine(program, network, request).run();
}

}  // namespace tutti::simulator
