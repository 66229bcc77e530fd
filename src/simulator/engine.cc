#include "src/simulator/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/simulator/event_queue.h"

namespace tutti {
namespace {

constexpr std::uint32_t kNone = ~0U;
constexpr std::uint32_t kMessageBit = 1U << 31;  // Of an event's subject: a message, else a rank.
constexpr double kUnknown = -1;
constexpr double kMostSlices = 64;

struct Message {
  double arrival_us = kUnknown;
  Chain chain;  // Up to its arrival.
  double begun_us = 0, sent_us = 0, finish_us = 0;
  float bytes = 0;  // On the wire.
  float queued_us = 0;
  std::uint32_t lane = 0;
  std::uint32_t next = kNone;  // Of its lane, or of the free ones.
};

struct LaneState {
  std::uint32_t head = kNone, tail = kNone;
  std::uint32_t sent = 0, taken = 0;
  std::uint32_t reader = kNone, writer = kNone;  // Ranks that wait.
  double last_arrival_us = 0;
};

struct RankState {
  double free_us = 0;
  double stored_us = 0;  // When all it has written in place is there.
  Chain chain;           // Up to free_us.
  std::uint32_t step = 0, stage_end = 0;
  std::uint32_t turn = 0, position = 0, piece = 0;
  std::uint32_t waits_for = kNone;  // Lane.
  std::uint32_t slice = 0;          // Of a step in peers' memory.
  std::uint32_t part = 0;           // Of any other step.
  bool done = false;
};

struct LinkState {
  double free_us = 0;
  double us_per_byte = 0;
  double bytes = 0;
  std::uint32_t parallel = 1;  // Links side by side.
  std::uint32_t first = 0;     // Of several: when each is free.
};

class Engine {
 public:
  Engine(const Program& program, const Network& network, const EngineRequest& request)
      : program_(program),
        network_(network),
        request_(request),
        protocol_(static_cast<std::size_t>(request.protocol)),
        wire_(request.costs.wire_bytes[protocol_]),
        step_us_(request.costs.step_us[protocol_]),
        us_per_byte_(1e-3 / (request.costs.channel_gbytes_per_s[protocol_] * request.channels)),
        lanes_(program.lanes.size()),
        ranks_(program.classes()),
        links_(network.resources()),
        slot_free_(program.lanes.size() * request.loop.slots),
        random_(request.seed * 0x9e3779b97f4a7c15ULL + 1) {
    for (ResourceId id = 0; id < links_.size(); ++id)
      if (program.sharers[id] > 0) lay_link(id);
    result_.piece_us.resize(request.pieces);
    const Loop& loop = request.loop;
    turns_ = request.pieces + loop.skew * (program.stage_count - 1);
    reversed_ = loop.skew > 0 && loop.order == StageOrder::latest_first;
  }

  Result<EngineResult> run() {
    const double begin = request_.costs.base_us[protocol_];
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      RankState& state = ranks_[rank];
      state.free_us = begin;
      state.chain.launch = static_cast<float>(begin);
      if (enter_first(rank)) queue_.push({begin, 0, rank});
      else finish(rank);
    }
    while (!queue_.empty()) {
      const Event event = queue_.pop();
      now_ = event.time;
      if ((event.subject & kMessageBit) != 0) enter_receiver(event.subject & ~kMessageBit);
      else advance(event.subject);
    }
    if (done_ < ranks_.size()) return deadlock();
    result_.links.reserve(links_.size());
    for (const LinkState& link : links_)
      result_.links.push_back({link.bytes * link.us_per_byte / link.parallel, link.bytes});
    return std::move(result_);
  }

 private:
  // ---- The loop ----

  std::uint32_t stage_of(const RankState& state) const {
    return reversed_ ? program_.stage_count - 1 - state.position : state.position;
  }

  // False if the stage has no piece in this turn, or no step.
  bool enter_stage(std::uint32_t rank) {
    RankState& state = ranks_[rank];
    const std::uint32_t stage = stage_of(state);
    const std::uint32_t behind = request_.loop.skew * stage;
    if (state.turn < behind || state.turn - behind >= request_.pieces) return false;
    const std::uint32_t* const stages = &program_.stages[std::size_t{rank} * (program_.stage_count + 1)];
    state.piece = state.turn - behind;
    state.step = stages[stage];
    state.stage_end = stages[stage + 1];
    if (state.step < state.stage_end) return true;
    leave_stage(state);
    return false;
  }

  void leave_stage(const RankState& state) {
    double& done = result_.piece_us[state.piece];
    if (stage_of(state) + 1 == program_.stage_count) done = std::max(done, state.free_us);
  }

  bool next_stage(std::uint32_t rank) {
    RankState& state = ranks_[rank];
    do {
      if (++state.position == program_.stage_count) {
        state.position = 0;
        if (++state.turn == turns_) return false;
      }
    } while (!enter_stage(rank));
    return true;
  }

  bool enter_first(std::uint32_t rank) { return turns_ > 0 && (enter_stage(rank) || next_stage(rank)); }

  void finish(std::uint32_t rank) {
    RankState& state = ranks_[rank];
    state.done = true;
    ++done_;
    if (state.free_us < result_.time_us) return;
    result_.time_us = state.free_us;
    result_.chain = state.chain;
    result_.last = program_.symmetry.representative_of_class(rank);
  }

  // ---- A step ----

  // What the step waited for, and until when.
  struct Ready {
    double us = 0;
    const Chain* chain = nullptr;  // Null: the rank's own, and then for slots.
    double handed_us = 0;          // By its host, of what was waited for.
    bool known = true;
  };

  void advance(std::uint32_t rank) {
    RankState& state = ranks_[rank];
    const TimedStep& step = program_.steps[state.step];
    Ready ready{.us = state.free_us, .chain = &state.chain, .known = true};
    if (state.slice == 0) await(rank, step, ready);
    if (!ready.known) return;
    if (ready.us > now_) return queue_.push({ready.us, 0, rank});
    const Chain chain = chain_to(state, ready);
    const double end = perform(rank, step, chain);
    state.chain = chain;
    settle(state, end);
    if (state.slice > 0) return queue_.push({end, 0, rank});
    if (++state.part < request_.parts) return queue_.push({end, 0, rank});
    state.part = 0;
    if (++state.step == state.stage_end) {
      leave_stage(state);
      if (!next_stage(rank)) return finish(rank);
    }
    queue_.push({end, 0, rank});
  }

  Chain chain_to(const RankState& state, const Ready& ready) const {
    Chain chain = ready.chain == nullptr ? state.chain : *ready.chain;
    if (ready.chain == nullptr) chain.slots += static_cast<float>(ready.us - state.free_us);
    else if (ready.chain != &state.chain) chain.hops += static_cast<float>(ready.handed_us);
    return chain;
  }

  void await(std::uint32_t rank, const TimedStep& step, Ready& ready) {
    RankState& state = ranks_[rank];
    state.waits_for = kNone;
    for (std::uint32_t i = step.first; i < step.first + step.sources + step.targets; ++i) {
      const End end = program_.ends[i];
      if (end.kind() == EndKind::receive || end.kind() == EndKind::await) await_message(rank, end, step.folds, ready);
      else if (end.kind() == EndKind::send) await_slot(rank, end.lane(), ready);
      if (!ready.known) {
        state.waits_for = end.lane();
        return;
      }
    }
  }

  void await_message(std::uint32_t rank, const End& end, bool folds, Ready& ready) {
    LaneState& lane = lanes_[end.lane()];
    if (lane.head == kNone || messages_[lane.head].arrival_us == kUnknown) {
      lane.reader = rank;
      ready.known = false;
      return;
    }
    const bool data = end.kind() == EndKind::receive;
    const LinkClass links = program_.lanes[end.lane()].route.links;
    const double handed = folds && data ? request_.costs.fold_us[static_cast<std::size_t>(links)] : 0;
    const double us = messages_[lane.head].arrival_us + handed;
    if (us <= ready.us) return;
    ready.us = us;
    ready.chain = &messages_[lane.head].chain;
    ready.handed_us = handed;
  }

  void await_slot(std::uint32_t rank, std::uint32_t number, Ready& ready) {
    LaneState& lane = lanes_[number];
    const std::uint32_t slots = request_.loop.slots;
    if (lane.sent < slots) return;
    if (lane.taken + slots <= lane.sent) {
      lane.writer = rank;
      ready.known = false;
      return;
    }
    const double us = slot_free_[std::size_t{number} * slots + lane.sent % slots] + signal_us(number);
    if (us <= ready.us) return;
    ready.us = us;
    ready.chain = nullptr;
  }

  double signal_us(std::uint32_t lane) const {
    const Route& route = program_.lanes[lane].route;
    return route.latency_us +
           request_.costs.hop_us[static_cast<std::size_t>(route.links)][static_cast<std::size_t>(Protocol::lines)];
  }

  double jittered(double us) {
    if (request_.jitter == 0) return us;
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const double uniform = (static_cast<double>(random_ >> 11) + 0.5) * 0x1p-53;
    return us * (1 - request_.jitter * std::log(uniform));
  }

  struct Ends {
    std::uint32_t in = 0, out = 0, mapped = 0;  // That carry bytes; of these, in memory of peers.
  };
  Ends ends_of(const TimedStep& step) const {
    Ends ends;
    for (std::uint32_t i = step.first; i < step.first + step.sources + step.targets; ++i) {
      const EndKind kind = program_.ends[i].kind();
      ends.in += kind == EndKind::receive || kind == EndKind::read ? 1 : 0;
      ends.out += kind == EndKind::send || kind == EndKind::write ? 1 : 0;
      ends.mapped += kind == EndKind::read || kind == EndKind::write ? 1 : 0;
    }
    return ends;
  }

  // In peers' memory all operands of a step are read and written side by side: slice by slice, as messages go in
  // pieces, so that none of them has the links for itself.
  std::uint32_t slices_of(const TimedStep& step) const {
    if (ends_of(step).mapped == 0 || request_.slice_bytes == 0) return 1;
    const double slices = std::ceil(step.units * request_.unit_bytes / request_.slice_bytes);
    return static_cast<std::uint32_t>(std::clamp(slices, 1.0, kMostSlices));
  }

  // Returns when the channel is free again.
  double perform(std::uint32_t rank, const TimedStep& step, const Chain& chain) {
    RankState& state = ranks_[rank];
    const auto [in, out, mapped] = ends_of(step);
    const double bytes = step.units * request_.unit_bytes / request_.parts;
    if (mapped > 0) return perform_mapped(rank, step, chain, bytes * std::max({in, out, 1U}));
    double end = now_ + jittered(step_us_ + bytes * std::max({in, out, 1U}) * us_per_byte_);
    const End* const ends = &program_.ends[step.first];
    for (std::uint32_t i = 0; i < step.sources; ++i) take(ends[i], end);
    for (std::uint32_t i = step.sources; i < std::uint32_t{step.sources} + step.targets; ++i) {
      if (ends[i].kind() == EndKind::send) send(ends[i].lane(), bytes, end, chain);
      else signal(state, ends[i].lane(), end, chain);
    }
    trace(false, rank, state.piece, {now_, end, bytes});
    ++result_.events;
    return end;
  }

  // A slice of the step. Lanes and flags are taken with the first one, and signalled after the last.
  double perform_mapped(std::uint32_t rank, const TimedStep& step, const Chain& chain, double moved_bytes) {
    RankState& state = ranks_[rank];
    const std::uint32_t slices = slices_of(step);
    const bool last = state.slice + 1 == slices;
    const double bytes = step.units * request_.unit_bytes / slices;
    const double busy = jittered((state.slice == 0 ? step_us_ : 0) + moved_bytes / slices * us_per_byte_);
    double end = now_ + busy;
    const End* const ends = &program_.ends[step.first];
    for (std::uint32_t i = 0; i < step.sources; ++i) {
      if (ends[i].kind() == EndKind::read) end = std::max(end, read(ends[i].lane(), bytes, last));
      else if (state.slice == 0) take(ends[i], now_ + busy);
    }
    const std::uint32_t all = std::uint32_t{step.sources} + step.targets;
    for (std::uint32_t i = step.sources; i < all; ++i)
      if (ends[i].kind() == EndKind::write) write(state, ends[i].lane(), bytes, end);
    for (std::uint32_t i = step.sources; last && i < all; ++i) {
      if (ends[i].kind() == EndKind::send) send(ends[i].lane(), bytes * slices, end, chain);
      if (ends[i].kind() == EndKind::signal) signal(state, ends[i].lane(), end, chain);
    }
    state.slice = last ? 0 : state.slice + 1;
    trace(false, rank, state.piece, {now_, end, bytes});
    ++result_.events;
    return end;
  }

  // The channel was busy until then, or waited for what it read.
  void settle(RankState& state, double end) {
    state.chain.channel += static_cast<float>(end - now_);
    state.free_us = end;
  }

  void take(const End& end, double end_us) {
    LaneState& lane = lanes_[end.lane()];
    const std::uint32_t message = lane.head;
    lane.head = messages_[message].next;
    if (lane.head == kNone) lane.tail = kNone;
    messages_[message].next = free_message_;
    free_message_ = message;
    if (end.kind() == EndKind::receive) {
      const std::uint32_t slots = request_.loop.slots;
      slot_free_[std::size_t{end.lane()} * slots + lane.taken % slots] = end_us;
    }
    ++lane.taken;
    if (lane.writer == kNone) return;
    queue_.push({end_us + signal_us(end.lane()), 0, lane.writer});
    lane.writer = kNone;
  }

  // ---- Links ----

  // When the head has passed the link; `finish` becomes no earlier than the tail has.
  double occupy(ResourceId id, double at, double bytes, double& finish) {
    LinkState& link = links_[id];
    double& free = free_of(link);
    const double start = std::max(at, free);
    free = start + bytes * link.us_per_byte;
    link.bytes += bytes;
    finish = std::max(finish, free);
    trace(true, id, 0, {start, free, bytes});
    return start;
  }

  // Where several links lie side by side, images share them out among each other.
  void lay_link(ResourceId id) {
    const Resource link = network_.resource(id);
    const double rate = link.gbytes_per_s * request_.costs.efficiency[static_cast<std::size_t>(link.kind)];
    const double links = static_cast<double>(link.parallel) / program_.sharers[id];
    LinkState& state = links_[id];
    state.parallel = static_cast<std::uint32_t>(std::max(links, 1.0));
    state.us_per_byte = 1e-3 * state.parallel / (links * rate);
    state.first = static_cast<std::uint32_t>(side_by_side_.size());
    if (state.parallel > 1) side_by_side_.resize(side_by_side_.size() + state.parallel);
  }

  double& free_of(LinkState& link) {
    if (link.parallel == 1) return link.free_us;
    const auto first = side_by_side_.begin() + link.first;
    return *std::min_element(first, first + link.parallel);
  }

  double pass_own(const Route& route, double at, double bytes, double& finish) {
    for (std::size_t i = 0; i + route.shared < route.outs; ++i) at = occupy(route.out[i], at, bytes, finish);
    return at;
  }
  double pass_others(const Route& route, double at, double bytes, double& finish) {
    for (std::size_t i = route.outs - route.shared; i < route.outs; ++i) at = occupy(route.out[i], at, bytes, finish);
    for (std::size_t i = 0; i < route.ins; ++i) at = occupy(route.in[i], at, bytes, finish);
    return at;
  }

  double read(std::uint32_t lane, double bytes, bool last) {
    const Route& route = program_.lanes[lane].route;
    double finish = now_;
    pass_others(route, pass_own(route, now_, bytes, finish), bytes, finish);
    result_.data_bytes += bytes;
    return finish + (last ? 2 * route.latency_us : 0);  // There, and back; further slices are asked for meanwhile.
  }

  void write(RankState& state, std::uint32_t lane, double bytes, double end) {
    const Route& route = program_.lanes[lane].route;
    double finish = end;
    pass_others(route, pass_own(route, now_, bytes, finish), bytes, finish);
    result_.data_bytes += bytes;
    state.stored_us = std::max(state.stored_us, finish);
  }

  std::uint32_t new_message(std::uint32_t lane) {
    std::uint32_t message = free_message_;
    if (message == kNone) {
      message = static_cast<std::uint32_t>(messages_.size());
      messages_.emplace_back();
    } else {
      free_message_ = messages_[message].next;
    }
    Message& made = messages_[message];
    made.lane = lane;
    made.next = kNone;
    made.arrival_us = kUnknown;
    made.queued_us = 0;
    LaneState& state = lanes_[lane];
    (state.tail == kNone ? state.head : messages_[state.tail].next) = message;
    state.tail = message;
    ++state.sent;
    return message;
  }

  void send(std::uint32_t lane, double bytes, double end, const Chain& chain) {
    const std::uint32_t number = new_message(lane);
    Message& message = messages_[number];
    const Route& route = program_.lanes[lane].route;
    message.chain = chain;
    message.begun_us = now_;
    message.sent_us = message.finish_us = end;
    message.bytes = static_cast<float>(bytes * wire_);
    result_.data_bytes += bytes;
    const double head = pass_own(route, now_, message.bytes, message.finish_us);
    message.queued_us = static_cast<float>(head - now_);
    if (route.ins == 0 && route.shared == 0) return arrive(number);
    queue_.push({head, 1 + program_.lanes[lane].distance, number | kMessageBit});
  }

  void enter_receiver(std::uint32_t number) {
    Message& message = messages_[number];
    const Route& route = program_.lanes[message.lane].route;
    const double head = pass_others(route, now_, message.bytes, message.finish_us);
    message.queued_us += static_cast<float>(head - now_);
    arrive(number);
    ++result_.events;
  }

  LinkKind narrowest(const Route& route) const {
    ResourceId found = route.outs > 0 ? route.out[0] : 0;
    for (std::size_t i = 0; i < route.outs; ++i)
      if (links_[route.out[i]].us_per_byte > links_[found].us_per_byte) found = route.out[i];
    for (std::size_t i = 0; i < route.ins; ++i)
      if (links_[route.in[i]].us_per_byte > links_[found].us_per_byte) found = route.in[i];
    return network_.resource(found).kind;
  }

  double hop_us(LinkClass links, double bytes) const {
    const auto at = static_cast<std::size_t>(links);
    const Costs& costs = request_.costs;
    const double ramp = costs.ramp_us[at] > 0 ? std::min(bytes / std::max(costs.ramp_bytes[at], 1.0), 1.0) : 0;
    return costs.hop_us[at][protocol_] + ramp * costs.ramp_us[at];
  }

  void arrive(std::uint32_t number) {
    Message& message = messages_[number];
    const Route& route = program_.lanes[message.lane].route;
    const double hop = jittered(hop_us(route.links, message.bytes / wire_)) + route.latency_us;
    LaneState& lane = lanes_[message.lane];
    message.arrival_us = std::max(message.finish_us + hop, lane.last_arrival_us);
    lane.last_arrival_us = message.arrival_us;
    Chain& chain = message.chain;
    chain.hops += static_cast<float>(message.arrival_us - message.finish_us);
    const double carried = message.finish_us - message.begun_us;
    if (message.finish_us <= message.sent_us) {
      chain.channel += static_cast<float>(carried);
    } else {
      const double queued = std::min<double>(message.queued_us, carried);
      chain.queues += static_cast<float>(queued);
      chain.links[static_cast<std::size_t>(narrowest(route))] += static_cast<float>(carried - queued);
    }
    wake_reader(lane, number);
  }

  void signal(const RankState& state, std::uint32_t lane, double end, const Chain& chain) {
    const std::uint32_t number = new_message(lane);
    Message& message = messages_[number];
    const double sent = std::max(end, state.stored_us);
    message.arrival_us = sent + jittered(signal_us(lane));
    message.chain = chain;
    message.chain.channel += static_cast<float>(end - now_);
    message.chain.links[static_cast<std::size_t>(narrowest(program_.lanes[lane].route))] +=
        static_cast<float>(sent - end);
    message.chain.hops += static_cast<float>(message.arrival_us - sent);
    wake_reader(lanes_[lane], number);
  }

  void wake_reader(LaneState& lane, std::uint32_t number) {
    if (lane.reader == kNone || lane.head != number) return;
    queue_.push({std::max(now_, messages_[number].arrival_us), 0, lane.reader});
    lane.reader = kNone;
  }

  struct Span {
    double begin, end, bytes;
  };
  void trace(bool link, std::uint32_t subject, std::uint32_t piece, const Span& span) {
    if (request_.trace == nullptr || request_.trace->size() >= request_.most_traced) return;
    const std::uint32_t shown = link ? subject : program_.symmetry.representative_of_class(subject);
    request_.trace->push_back({link, shown, piece, span.begin, span.end, span.bytes});
  }

  Status deadlock() const {
    std::string who;
    std::uint32_t told = 0;
    for (std::uint32_t rank = 0; rank < ranks_.size() && told < 4; ++rank) {
      const RankState& state = ranks_[rank];
      if (state.done || state.waits_for == kNone) continue;
      const LaneLinks& links = program_.lanes[state.waits_for];
      const bool reads = lanes_[state.waits_for].reader == rank;
      who += (told++ == 0 ? "" : ", ") + std::string("rank ") +
             std::to_string(program_.symmetry.representative_of_class(rank)) +
             (reads ? " for a message from rank " : " for a slot to rank ") +
             std::to_string(reads ? links.from : links.to);
    }
    return internal_error(std::to_string(ranks_.size() - done_) + " ranks wait for ever: " + who);
  }

  const Program& program_;
  const Network& network_;
  const EngineRequest& request_;
  const std::size_t protocol_;
  const double wire_;
  const double step_us_;
  const double us_per_byte_;
  std::vector<LaneState> lanes_;
  std::vector<RankState> ranks_;
  std::vector<LinkState> links_;
  std::vector<double> side_by_side_;
  std::vector<Message> messages_;
  std::vector<double> slot_free_;  // [lane * slots + slot]: when its message had been taken.
  EventQueue queue_;
  EngineResult result_;
  std::uint64_t random_;
  double now_ = 0;
  std::uint32_t turns_ = 0;
  std::uint32_t free_message_ = kNone;
  std::size_t done_ = 0;
  bool reversed_ = false;
};

}  // namespace

Result<EngineResult> run_engine(const Program& program, const Network& network, const EngineRequest& request) {
  return Engine(program, network, request).run();
}

}  // namespace tutti
