#include "transports/verbs/verbs_carrier.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tutti {
namespace {

constexpr std::uint32_t kStripedBytes = 64 << 10;  // Messages from this size on are split over all ports.
constexpr std::uint32_t kCut = 4096;               // Granularity of the split.

}  // namespace

// ---- Connecting ----

Result<std::unique_ptr<Carrier>> VerbsCarrier::create(const std::vector<VerbsPort>& ports,
                                                      const VerbsOptions& options) {
  TUTTI_ASSERT(!ports.empty());
  std::unique_ptr<VerbsCarrier> carrier(new VerbsCarrier(options, ports.size()));
  const std::size_t pairs = std::clamp<std::size_t>(options.queue_pairs, 1, kMaxQueuePairs);
  for (std::size_t i = 0; i < pairs * ports.size(); ++i) {
    std::unique_ptr<PortConnection> connection = TUTTI_TRY(PortConnection::create(ports[i % ports.size()], options));
    carrier->connections_.push_back(std::move(connection));
  }
  carrier->descriptor_ = adopt_socket(::epoll_create1(EPOLL_CLOEXEC));
  if (!carrier->descriptor_) return system_error("make a descriptor for " + carrier->describe());
  return std::unique_ptr<Carrier>(std::move(carrier));
}

std::string VerbsCarrier::describe() const {
  std::string text = "verbs";
  for (std::size_t port = 0; port < std::min(ports_, connections_.size()); ++port)
    text += ", " + connections_[port]->describe();
  return pairs() > 1 ? text + ", " + std::to_string(pairs()) + " queue pairs per port" : text;
}

std::vector<std::byte> VerbsCarrier::address() const {
  VerbsAddress address;
  address.port_count = static_cast<std::uint16_t>(ports_);
  address.pairs_per_port = static_cast<std::uint16_t>(pairs());
  for (std::size_t i = 0; i < connections_.size(); ++i) address.queue_pairs[i] = connections_[i]->address();
  std::vector<std::byte> bytes(sizeof address);
  std::memcpy(bytes.data(), &address, sizeof address);
  return bytes;
}

Status VerbsCarrier::connect(std::span<const std::byte> bytes) {
  VerbsAddress other;
  if (bytes.size() != sizeof other) return remote_error("the peer's address is not one of " + describe());
  std::memcpy(&other, bytes.data(), sizeof other);
  if (other.version != kVerbsVersion || other.port_count == 0 || other.port_count > kMaxPorts ||
      other.pairs_per_port == 0 || other.pairs_per_port > kMaxQueuePairs)
    return remote_error("the peer's address is not one of " + describe());
  const std::size_t common_pairs = std::min<std::size_t>(pairs(), other.pairs_per_port);
  const std::size_t common_ports = std::min<std::size_t>(ports_, other.port_count);
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const std::size_t pair = i / ports_, port = i % ports_;
    if (pair >= common_pairs || port >= common_ports) continue;
    TUTTI_CHECK_OK(connections_[i]->connect(other.queue_pairs[pair * other.port_count + port]));
    TUTTI_CHECK_OK(wait_for(connections_[i]->descriptor()));
    used.push_back(i);
  }
  for (std::size_t i = 0; i < used.size(); ++i) std::swap(connections_[i], connections_[used[i]]);
  connections_.resize(used.size());
  ports_ = common_ports;
  if (read_back_ != nullptr) read_back_->keep(ports_);
  return {};
}

Status VerbsCarrier::wait_for(int descriptor) {
  epoll_event readable = {};
  readable.events = EPOLLIN;
  if (::epoll_ctl(descriptor_.get(), EPOLL_CTL_ADD, descriptor, &readable) == 0) return {};
  return system_error("wait for " + describe());
}

bool VerbsCarrier::acknowledged() const {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& connection) { return connection->acknowledged(); });
}

// ---- Lanes ----

Result<LaneMemory> VerbsCarrier::allocate(std::size_t bytes) { return HalfLane::allocate_shared(bytes); }

std::vector<std::shared_ptr<VerbsDevice>> VerbsCarrier::device_of_port() const {
  std::vector<std::shared_ptr<VerbsDevice>> devices;
  for (std::size_t port = 0; port < ports_; ++port) devices.push_back(connections_[port]->port().device);
  return devices;
}

// The registration lives as long as the returned memory, which owns it.
Result<RegisteredRegion> VerbsCarrier::register_device_memory(const DeviceRegion& region) {
  auto memory = std::make_shared<PortMemory>();
  memory->device_memory = region.memory;
  memory->at = region.memory.get();
  memory->bytes = region.bytes;
  memory->ordered = region.ordered;
  RegisteredRegion reached;
  const auto add = [&](const VerbsDevice& device) -> Result<MemoryRegion> {
    DeviceMemoryRegion made = TUTTI_TRY(device.register_region(region));
    reached.how += (reached.how.empty() ? "" : ", ") + device.name() + " " + made.how;
    return std::move(made.region);
  };
  TUTTI_CHECK_OK(register_with_ports(*memory, device_of_port(), add));
  if (!region.ordered) TUTTI_CHECK_OK(prepare_read_back());
  std::erase_if(regions_, [](const auto& known) { return known.expired(); });
  regions_.push_back(memory);
  std::byte* at = memory->at;
  reached.memory = LaneMemory(std::move(memory), at);
  return reached;
}

Status VerbsCarrier::prepare_read_back() {
  if (read_back_ != nullptr) return {};
  std::vector<VerbsPort> ports;
  for (std::size_t port = 0; port < ports_; ++port) ports.push_back(connections_[port]->port());
  std::unique_ptr<ReadBack> made = TUTTI_TRY(ReadBack::create(ports, options_));
  for (const int descriptor : made->descriptors()) TUTTI_CHECK_OK(wait_for(descriptor));
  read_back_ = std::move(made);
  return {};
}

Result<VerbsCarrier::Slots> VerbsCarrier::registered(const HalfLane& half, RegionUse use) const {
  Slots slots;
  slots.at = half.view.slots;
  slots.bytes = std::size_t{half.view.slot_bytes} << half.view.slot_shift;
  for (const auto& region : regions_) {
    slots.memory = region.lock();
    if (slots.memory != nullptr && slots.memory->holds(slots.at)) return slots;
  }
  auto own = std::make_shared<PortMemory>();
  own->at = slots.at;
  own->bytes = slots.bytes;
  const auto add = [&](const VerbsDevice& device) { return device.register_memory(slots.at, slots.bytes, use); };
  TUTTI_CHECK_OK(register_with_ports(*own, device_of_port(), add));
  slots.memory = std::move(own);
  return slots;
}

Result<std::vector<std::byte>> VerbsCarrier::register_reader(std::uint32_t lane, const HalfLane& reading) {
  Reading made;
  made.slots = TUTTI_TRY(registered(reading, RegionUse::remote));
  made.view = reading.view;
  VerbsLanding landing;
  landing.address = reinterpret_cast<std::uint64_t>(made.slots.at);
  landing.bytes = made.slots.bytes;
  for (std::size_t port = 0; port < ports_; ++port) landing.keys[port] = made.slots.memory->of_port[port]->rkey;
  landing.max_eager = made.slots.on_device() ? 0 : std::uint32_t{kEagerBytes};
  if (!reading_.emplace(lane, std::move(made)).second) return internal_error("a lane landed twice");
  next_reading_ = std::max(next_reading_, lane + 1);
  std::vector<std::byte> bytes(sizeof landing);
  std::memcpy(bytes.data(), &landing, sizeof landing);
  return bytes;
}

Status VerbsCarrier::attach(std::uint32_t lane, const HalfLane& writing, std::span<const std::byte> bytes) {
  Writing made;
  made.slots = TUTTI_TRY(registered(writing, RegionUse::local));
  if (bytes.size() != sizeof made.landing) return remote_error("received a malformed lane address over " + describe());
  std::memcpy(&made.landing, bytes.data(), sizeof made.landing);
  if (made.landing.bytes != made.slots.bytes)
    return remote_error("the reader's slots of a lane have " + std::to_string(made.landing.bytes) + " bytes, not " +
                        std::to_string(made.slots.bytes) + ", over " + describe());
  made.max_eager = made.slots.on_device() ? 0 : std::min<std::size_t>(made.landing.max_eager, kEagerBytes);
  if (!writing_.emplace(lane, std::move(made)).second) return internal_error("a lane was attached twice");
  return {};
}

void VerbsCarrier::forget(std::uint32_t lane, LaneEnd end) {
  if (end == LaneEnd::reader) {
    reading_.erase(lane);
    const auto reads = held_.begin() + static_cast<std::ptrdiff_t>(reading_back_);
    const auto of_lane = [lane](const Held& held) { return held.head.lane == lane; };
    reading_back_ -= static_cast<std::size_t>(std::count_if(held_.begin(), reads, of_lane));
    std::erase_if(held_, of_lane);
    return;
  }
  writing_.erase(lane);
  std::erase(unsent_, lane);
}

// ---- Sending ----

// A small message takes the path of the credits of its lane. Larger ones of a lane take turns on the queue pairs.
VerbsCarrier::Paths VerbsCarrier::paths_of(const Writing& lane, const MessageHead& head) const {
  if (head.bytes <= lane.max_eager) return {home(head.lane), 1};
  const std::size_t pair = (head.lane / ports_ + head.number) % pairs();
  if (head.bytes >= kStripedBytes) return {pair * ports_, ports_};
  return {pair * ports_ + head.lane % ports_, 1};
}

// Returns the share of a message that `path`, one of `paths`, carries.
PortConnection::Write VerbsCarrier::part_of(const Writing& lane, const MessageHead& head, const std::byte* data,
                                            const Paths& paths, std::size_t path) const {
  std::size_t begin = 0, end = head.bytes;
  if (paths.count > 1) {
    const auto cut = [&](std::size_t part) { return head.bytes / kCut * part / paths.count * kCut; };
    begin = cut(path - paths.first);
    if (path + 1 < paths.first + paths.count) end = cut(path - paths.first + 1);
  }
  const std::size_t port = path % ports_;
  const auto offset = static_cast<std::size_t>(data - lane.slots.at) + begin;
  return {.from = data + begin,
          .from_key = lane.slots.memory->of_port[port]->lkey,
          .to_key = lane.landing.keys[port],
          .to = lane.landing.address + offset,
          .bytes = static_cast<std::uint32_t>(end - begin)};
}

Result<bool> VerbsCarrier::put(const MessageHead& head, const std::byte* data) {
  const auto found = writing_.find(head.lane);
  if (found == writing_.end()) return internal_error("a message of a lane that is not attached");
  Writing& lane = found->second;
  const Paths paths = paths_of(lane, head);
  for (std::size_t i = paths.first; i < paths.first + paths.count; ++i) {
    if (!connections_[i]->has_room()) return false;
  }
  VerbsRecord record;
  record.head = head;
  lane.put = head.number + 1;
  if (head.bytes <= lane.max_eager) {
    record.kind = RecordKind::eager;
    TUTTI_CHECK_OK(connections_[paths.first]->send(record, {data, head.bytes}, {}));
    leave(head.lane, lane);
    return true;
  }
  record.kind = RecordKind::message;
  record.parts = static_cast<std::uint16_t>(paths.count);
  lane.in_flight[head.number % HalfLane::kSlots] = record.parts;
  for (std::size_t i = paths.first; i < paths.first + paths.count; ++i)
    TUTTI_CHECK_OK(connections_[i]->send(record, {}, part_of(lane, head, data, paths, i)));
  return true;
}

Result<bool> VerbsCarrier::credit(std::uint32_t lane, std::uint64_t taken) {
  PortConnection& connection = *connections_[home(lane)];
  if (!connection.has_room()) return false;
  VerbsRecord record;
  record.kind = RecordKind::credit;
  record.head.lane = lane;
  record.head.number = taken;
  TUTTI_CHECK_OK(connection.send(record, {}, {}));
  return true;
}

void VerbsCarrier::written(std::uint32_t number, std::uint64_t message) {
  const auto found = writing_.find(number);
  if (found == writing_.end()) return;
  --found->second.in_flight[message % HalfLane::kSlots];
  leave(number, found->second);
}

// Frees slots in the order of the messages.
void VerbsCarrier::leave(std::uint32_t number, Writing& lane) {
  const std::uint64_t before = lane.left;
  while (lane.left < lane.put && lane.in_flight[lane.left % HalfLane::kSlots] == 0) ++lane.left;
  if (lane.left != before && std::exchange(lane.reported, false)) unsent_.push_back(number);
}

// ---- Receiving ----

Status VerbsCarrier::advance(CarrierEvents& events) {
  events_ = &events;
  for (const auto& connection : connections_) TUTTI_CHECK_OK(connection->advance(*this));
  TUTTI_CHECK_OK(read_back());
  for (const std::uint32_t number : unsent_) {
    Writing& lane = writing_.at(number);
    lane.reported = true;
    events.left(number, lane.left);
  }
  unsent_.clear();
  return {};
}

Status VerbsCarrier::received(const VerbsRecord& record, std::span<const std::byte> data) {
  if (record.kind == RecordKind::credit) return events_->credited(record.head.lane, record.head.number);
  if (record.kind != RecordKind::message && record.kind != RecordKind::eager)
    return remote_error("received a record of an unknown kind over " + describe());
  const auto found = reading_.find(record.head.lane);
  if (found == reading_.end() && record.head.lane < next_reading_) return {};  // The lane was forgotten.
  if (found == reading_.end()) return remote_error("received a message for an unknown lane over " + describe());
  return received(record, data, found->second);
}

// Records of one message arrive in any order, as do messages on different connections.
Status VerbsCarrier::received(const VerbsRecord& record, std::span<const std::byte> data, Reading& lane) {
  const MessageHead& head = record.head;
  Arrival& arrival = lane.arrivals[head.number % HalfLane::kSlots];
  const bool eager = record.kind == RecordKind::eager;
  const bool right = head.number - lane.next < HalfLane::kSlots && head.bytes <= lane.view.slot_bytes &&
                     record.parts > 0 && record.parts <= (eager ? 1 : ports_) &&
                     data.size() == (eager ? head.bytes : 0) && (data.empty() || !lane.slots.on_device());
  const bool fits = arrival.came == 0 || (arrival.parts == record.parts && arrival.came < arrival.parts &&
                                          std::memcmp(&arrival.head, &head, sizeof head) == 0);
  if (!right || !fits)
    return remote_error("received a message in the wrong order, or longer than its slot, over " + describe());
  if (eager && !data.empty()) std::memcpy(slot_of(lane.view, head.number), data.data(), data.size());
  arrival = {head, record.parts, static_cast<std::uint16_t>(arrival.came + 1)};
  for (;;) {
    Arrival& first = lane.arrivals[lane.next % HalfLane::kSlots];
    if (first.came == 0 || first.came < first.parts) return {};
    TUTTI_CHECK_OK(notify(first.head, lane));
    first = {};
    ++lane.next;
  }
}

Status VerbsCarrier::notify(const MessageHead& head, const Reading& lane) {
  if (lane.slots.memory->ordered || has_inline_flags(lane.view.protocol)) return events_->arrived(head);
  held_.push_back({head, lane.slots.memory});
  return {};
}

// One read covers all data received in that memory before.
Status VerbsCarrier::read_back() {
  if (read_back_ == nullptr) return {};
  const bool done = TUTTI_TRY(read_back_->done());
  if (!done) return {};
  for (; reading_back_ > 0; --reading_back_) {
    const MessageHead head = held_.front().head;
    held_.pop_front();
    TUTTI_CHECK_OK(events_->arrived(head));
  }
  if (held_.empty()) return {};
  const std::shared_ptr<const PortMemory> memory = held_.front().memory;
  const auto elsewhere = [&](const Held& held) { return held.memory != memory; };
  reading_back_ = static_cast<std::size_t>(std::find_if(held_.begin(), held_.end(), elsewhere) - held_.begin());
  return read_back_->begin(memory);
}

bool VerbsCarrier::arm() {
  if (!unsent_.empty()) return false;
  // Arms all connections, even if one has work, because later waits may concern others. advance() detects failures.
  bool quiet = true;
  for (const auto& connection : connections_) {
    const Result<bool> armed = connection->arm();
    quiet = armed.ok() && armed.value() && quiet;
  }
  if (read_back_ == nullptr) return quiet;
  const Result<bool> reads = read_back_->arm();  // Also without held messages: the last read may have left an event.
  return reads.ok() && (reads.value() || held_.empty()) && quiet;
}

}  // namespace tutti
