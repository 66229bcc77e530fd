#include "tools/simulator/simulated_lanes.h"

#include <algorithm>
#include <cmath>

namespace tutti::simulator {
namespace {

constexpr double kUnknown = -1;
constexpr ResourceId kNoLink = ~0U;

}  // namespace

double Timeline::jittered(double us) {
  if (jitter == 0) return us;
  random = random * 6364136223846793005ULL + 1442695040888963407ULL;
  const double uniform = (static_cast<double>(random >> 11) + 0.5) * 0x1p-53;
  return us * (1 - jitter * std::log(uniform));
}

SimulatedLanes::SimulatedLanes(const Program& program, const Network& network, const EngineRequest& request,
                               Timeline& timeline)
    : program_(program),
      network_(network),
      request_(request),
      timeline_(timeline),
      protocol_(static_cast<std::size_t>(request.protocol)),
      lanes_(program.lanes.size()),
      links_(network.resources()),
      slot_free_(program.lanes.size() * request.loop.slots) {
  for (ResourceId id = 0; id < links_.size(); ++id)
    if (program.sharers[id] > 0) lay_link(id);
  limit_ports();
  join_links();
  lay_lanes();
}

// ---- Construction ----

// The minimum of 0.1 is for numbers of ranks beyond all measurements.
double SimulatedLanes::multicast_part() const {
  const double doublings = std::log2(network_.ranks_per_host() * network_.hosts_per_nvlink_domain() / 8.0);
  return std::max(0.1, request_.costs.multicast - request_.costs.multicast_falls * doublings);
}

// Images of a representative divide parallel links evenly among themselves.
void SimulatedLanes::lay_link(ResourceId id) {
  const Resource link = network_.resource(id);
  const double part = program_.multicast && link.kind == LinkKind::nvlink ? multicast_part() : 1;
  const double rate = link.gbytes_per_s * request_.costs.efficiency[static_cast<std::size_t>(link.kind)] * part;
  LinkState& state = links_[id];
  state.parallel = link.parallel / program_.sharers[id];
  state.us_per_byte = static_cast<float>(1e-3 / rate);
  state.first = static_cast<std::uint32_t>(side_by_side_.size());
  if (state.parallel > 1) side_by_side_.resize(side_by_side_.size() + state.parallel);
}

// A message of the simulation stands for one of each channel. The ranks of a port have a proxy each.
void SimulatedLanes::limit_ports() {
  if (network_.cluster().hosts == 1) return;
  const double message_us = request_.costs.proxy_us * request_.channels / network_.ranks_per_port();
  const auto limit = [&](ResourceId id) {
    if (network_.is_port(id)) links_[id].message_us = static_cast<float>(message_us);
  };
  for (const LaneLinks& lane : program_.lanes) {
    const Route& route = lane.route;
    std::for_each_n(route.out.begin(), route.outs, limit);
    std::for_each_n(route.in.begin(), route.ins, limit);
  }
}

// Joins consecutive links that carry the same messages. Messages only ever wait for the slowest of them, so that link
// accounts for all. Parallel links are not joined, since they carry several messages at once.
void SimulatedLanes::join_links() {
  std::vector<std::uint32_t> uses(links_.size());
  std::vector<ResourceId> after(links_.size(), kNoLink), before(links_.size(), kNoLink);
  std::vector<bool> mixed(links_.size());  // Links whose predecessor or successor differs between lanes.
  const auto note = [&](std::vector<ResourceId>& beside, ResourceId id, ResourceId other) {
    if (uses[id] > 1 && beside[id] != other) mixed[id] = true;
    beside[id] = other;
  };
  for (const LaneLinks& lane : program_.lanes) {
    const Route& route = lane.route;
    for (const bool out : {true, false}) {
      const auto& side = out ? route.out : route.in;
      const std::size_t count = out ? route.outs - route.shared : route.ins;
      for (std::size_t i = 0; i < count; ++i) {
        ++uses[side[i]];
        note(before, side[i], i > 0 ? side[i - 1] : kNoLink);
        note(after, side[i], i + 1 < count ? side[i + 1] : kNoLink);
      }
    }
    for (std::size_t i = route.outs - route.shared; i < route.outs; ++i) mixed[route.out[i]] = true;
  }
  for (ResourceId id = 0; id < links_.size(); ++id)
    if (links_[id].parallel > 1) mixed[id] = true;
  joined_to_.resize(links_.size());
  for (ResourceId id = 0; id < links_.size(); ++id) joined_to_[id] = id;
  for (ResourceId id = 0; id < links_.size(); ++id) {
    if (uses[id] == 0 || mixed[id] || joined_to_[id] != id) continue;
    ResourceId slowest = id;
    std::vector<ResourceId> row = {id};
    for (ResourceId next = after[id]; next != kNoLink && !mixed[next] && before[next] == row.back() &&
                                      uses[next] == uses[id] && joined_to_[next] == next;
         next = after[next]) {
      row.push_back(next);
      if (links_[next].us_per_byte > links_[slowest].us_per_byte) slowest = next;
    }
    for (const ResourceId each : row) {
      joined_to_[each] = slowest;
      links_[slowest].message_us = std::max(links_[slowest].message_us, links_[each].message_us);
    }
  }
}

void SimulatedLanes::lay_lanes() {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Route& route = program_.lanes[i].route;
    Lane& lane = lanes_[i];
    lane.latency_us = route.latency_us;
    lane.links_class = static_cast<std::uint8_t>(route.links);
    std::array<ResourceId, 2 * Route::kMax> kept{};
    std::size_t count = 0;
    const auto keep = [&](ResourceId id, std::size_t from) {
      id = joined_to_[id];
      if (std::find(kept.begin() + static_cast<std::ptrdiff_t>(from), kept.begin() + static_cast<std::ptrdiff_t>(count),
                    id) == kept.begin() + static_cast<std::ptrdiff_t>(count))
        kept[count++] = id;
    };
    for (std::size_t k = 0; k + route.shared < route.outs; ++k) keep(route.out[k], 0);
    std::size_t own = count;
    for (std::size_t k = route.outs - route.shared; k < route.outs; ++k) keep(route.out[k], own);
    for (std::size_t k = 0; k < route.ins; ++k) keep(route.in[k], own);
    while (count > kMaxLinks) {  // Longer than the routes of all known machines: drop the fastest link.
      const auto fastest =
          std::min_element(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count),
                           [&](ResourceId a, ResourceId b) { return links_[a].us_per_byte < links_[b].us_per_byte; });
      if (static_cast<std::size_t>(fastest - kept.begin()) < own) --own;
      std::copy(fastest + 1, kept.begin() + static_cast<std::ptrdiff_t>(count), fastest);
      --count;
    }
    lane.own = static_cast<std::uint8_t>(own);
    lane.others = static_cast<std::uint8_t>(count - own);
    std::copy_n(kept.begin(), count, lane.links.begin());
  }
}

// ---- Links ----

double& SimulatedLanes::free_of(LinkState& link) {
  if (link.parallel == 1) return link.free_us;
  const auto first = side_by_side_.begin() + link.first;
  return *std::min_element(first, first + link.parallel);
}

// Returns the time at which the head has passed the link. Raises `finish` to the time at which the tail has.
double SimulatedLanes::occupy(ResourceId id, double at, double bytes, double& finish) {
  LinkState& link = links_[id];
  double& free = free_of(link);
  const double start = std::max(at, free);
  free = start + std::max<double>(bytes * link.us_per_byte, link.message_us);
  link.bytes += bytes;
  finish = std::max(finish, free);
  if (request_.trace != nullptr && request_.trace->size() < request_.max_traced)
    request_.trace->push_back({true, id, 0, start, free, bytes});
  return start;
}

double SimulatedLanes::pass(const Lane& lane, std::size_t first, std::size_t end,
                            const std::array<double, 2>& at_and_bytes, double& finish) {
  double at = at_and_bytes[0];
  for (std::size_t i = first; i < end; ++i) at = occupy(lane.links[i], at, at_and_bytes[1], finish);
  return at;
}

double SimulatedLanes::transfer(std::uint32_t number, double bytes) {
  const Lane& lane = lanes_[number];
  double finish = timeline_.now;
  const double carried = bytes / request_.costs.mapped_share;
  pass(lane, 0, std::size_t{lane.own} + lane.others, {timeline_.now, carried}, finish);
  data_bytes_ += bytes;
  return finish;
}

LinkKind SimulatedLanes::narrowest(const Lane& lane) const {
  ResourceId found = lane.links[0];
  for (std::size_t i = 0; i < std::size_t{lane.own} + lane.others; ++i)
    if (links_[lane.links[i]].us_per_byte > links_[found].us_per_byte) found = lane.links[i];
  return network_.resource(found).kind;
}

std::vector<LinkUse> SimulatedLanes::uses() const {
  std::vector<LinkUse> uses;
  uses.reserve(links_.size());
  for (ResourceId id = 0; id < links_.size(); ++id) {
    const double bytes = links_[joined_to_[id]].bytes;
    uses.push_back({bytes * links_[id].us_per_byte / links_[id].parallel, bytes});
  }
  return uses;
}

// ---- Messages ----

SimulatedLanes::Promise SimulatedLanes::next(std::uint32_t number, std::uint32_t rank) {
  Lane& lane = lanes_[number];
  if (lane.head == kNone || messages_[lane.head].arrival_us == kUnknown) {
    lane.reader = rank;
    return {.known = false};
  }
  const Message& message = messages_[lane.head];
  return {.known = true, .us = message.arrival_us, .chain = &message.chain};
}

SimulatedLanes::Promise SimulatedLanes::slot(std::uint32_t number, std::uint32_t rank) {
  Lane& lane = lanes_[number];
  const std::uint32_t slots = request_.loop.slots;
  if (lane.sent < slots) return {};
  if (lane.taken + slots <= lane.sent) {
    lane.writer = rank;
    return {.known = false};
  }
  return {.known = true, .us = slot_free_[std::size_t{number} * slots + lane.sent % slots] + signal_us(lane)};
}

void SimulatedLanes::prefetch_links_of(std::uint32_t message) const {
  const Lane& lane = lanes_[messages_[message].lane];
  for (std::size_t i = lane.own; i < std::size_t{lane.own} + lane.others; ++i)
    __builtin_prefetch(&links_[lane.links[i]]);
}

void SimulatedLanes::prefetch_next(const End& end) const {
  const Lane& lane = lanes_[end.lane()];
  const std::uint32_t slots = request_.loop.slots;
  if (end.kind() == EndKind::send) {
    __builtin_prefetch(&slot_free_[std::size_t{end.lane()} * slots + lane.sent % slots]);
    for (std::size_t i = 0; i < lane.own; ++i) __builtin_prefetch(&links_[lane.links[i]]);
  } else if (lane.head != kNone) {
    prefetch(lane.head);
  }
}

void SimulatedLanes::take(const End& end, double end_us) {
  Lane& lane = lanes_[end.lane()];
  const std::uint32_t message = lane.head;
  lane.head = messages_[message].next;
  if (lane.head == kNone) lane.tail = kNone;
  messages_[message].next = free_message_;
  free_message_ = message;
  const std::uint32_t slots = request_.loop.slots;
  if (end.kind() == EndKind::receive) slot_free_[std::size_t{end.lane()} * slots + lane.taken % slots] = end_us;
  ++lane.taken;
  if (lane.writer == kNone) return;
  timeline_.wake(lane.writer, end_us + signal_us(lane));
  lane.writer = kNone;
}

std::uint32_t SimulatedLanes::new_message(std::uint32_t number) {
  std::uint32_t message = free_message_;
  if (message == kNone) {
    message = static_cast<std::uint32_t>(messages_.size());
    messages_.emplace_back();
  } else {
    free_message_ = messages_[message].next;
  }
  messages_[message].lane = number;
  messages_[message].next = kNone;
  messages_[message].arrival_us = kUnknown;
  Lane& lane = lanes_[number];
  (lane.tail == kNone ? lane.head : messages_[lane.tail].next) = message;
  lane.tail = message;
  ++lane.sent;
  return message;
}

double SimulatedLanes::send(std::uint32_t number, double bytes, double end_us, const Chain& chain) {
  const std::uint32_t made = new_message(number);
  Lane& lane = lanes_[number];
  Message& message = messages_[made];
  message.chain = chain;
  message.begun_us = timeline_.now;
  message.sent_us = message.finish_us = end_us;
  message.bytes = static_cast<float>(bytes * request_.costs.sent_bytes_per_byte[protocol_]);
  data_bytes_ += bytes;
  const double head = pass(lane, 0, lane.own, {timeline_.now, message.bytes}, message.finish_us);
  message.queued_us = static_cast<float>(head - timeline_.now);
  const double passed_us = message.finish_us;
  if (lane.others == 0) arrive(made);
  else timeline_.queue.push({head, 1 + program_.lanes[number].distance, made | kMessageBit});
  return passed_us;
}

void SimulatedLanes::enter_receiver(std::uint32_t number) {
  Message& message = messages_[number];
  const Lane& lane = lanes_[message.lane];
  const double head =
      pass(lane, lane.own, std::size_t{lane.own} + lane.others, {timeline_.now, message.bytes}, message.finish_us);
  message.queued_us += static_cast<float>(head - timeline_.now);
  arrive(number);
}

void SimulatedLanes::arrive(std::uint32_t number) {
  Message& message = messages_[number];
  Lane& lane = lanes_[message.lane];
  const Costs& costs = request_.costs;
  const bool posted = protocol_ == static_cast<std::size_t>(Protocol::ll) &&
                      lane.links_class == static_cast<std::uint8_t>(LinkClass::network);
  const double hop_us = costs.hop_us[lane.links_class][protocol_] + (posted ? costs.post_us : 0);
  const double hop = timeline_.jittered(hop_us + costs.received_us[protocol_]) + lane.latency_us;
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
    chain.links[static_cast<std::size_t>(narrowest(lane))] += static_cast<float>(carried - queued);
  }
  wake_reader(lane, number);
}

void SimulatedLanes::signal(std::uint32_t number, double end_us, double stored_us, const Chain& chain) {
  const std::uint32_t made = new_message(number);
  Lane& lane = lanes_[number];
  Message& message = messages_[made];
  const double sent = std::max(end_us, stored_us);
  message.arrival_us = std::max(sent + timeline_.jittered(signal_us(lane)), lane.last_arrival_us);
  lane.last_arrival_us = message.arrival_us;
  message.chain = chain;
  message.chain.channel += static_cast<float>(end_us - timeline_.now);
  message.chain.links[static_cast<std::size_t>(narrowest(lane))] += static_cast<float>(sent - end_us);
  message.chain.hops += static_cast<float>(message.arrival_us - sent);
  wake_reader(lane, made);
}

void SimulatedLanes::wake_reader(Lane& lane, std::uint32_t message) {
  if (lane.reader == kNone || lane.head != message) return;
  timeline_.wake(lane.reader, messages_[message].arrival_us);
  lane.reader = kNone;
}

}  // namespace tutti::simulator
