#include "tests/ptx/machine/global_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/ptx/machine/words.h"

namespace tutti::ptx {
namespace {

std::string hexadecimal(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::byte* pointer(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

}  // namespace

GlobalMemory::GlobalMemory(AddressSpace& space, Clocks& clocks, const MachineOptions& options, Random& random)
    : space_(space), clocks_(clocks), options_(options), random_(random), history_(1024), released_(View()) {}

void GlobalMemory::refresh() {
  const std::uint64_t version = space_.version();
  if (version == version_) return;
  version_ = version;
  using Change = AddressSpace::Change;
  for (const Change& change : space_.take_changes()) {
    if (change.kind == Change::Kind::written) {
      shadow_.mark_written(change.begin, change.end);
    } else {
      shadow_.forget(change.begin, change.end, false);
    }
  }
  ranges_.clear();
  for (const MemoryRange& each : space_.ranges()) {
    const auto begin = reinterpret_cast<std::uint64_t>(each.begin);
    ranges_.push_back({begin, begin + each.bytes, each.devices, each.tracks_uninitialised, each.replicas});
  }
  last_range_ = 0;
}

void GlobalMemory::end_launches(std::uint64_t stamp) {
  View view;
  view.ended = stamp;
  released_ = clocks_.join(released_, ViewRef(std::move(view)));
}

ViewRef GlobalMemory::outside() const {
  View host;
  host.operations = clocks_.host().get();
  return clocks_.join(released_, ViewRef(std::move(host)));
}

Event GlobalMemory::event_of(const Block& block, std::uint32_t warp, std::uint32_t lane) const {
  return {block.number, block.epoch, block.warps[warp].threads[lane].clock,
          static_cast<std::uint16_t>(warp * 32 + lane)};
}

void GlobalMemory::raise_bounds(const Access& access, std::uint32_t lane) const {
  const std::uint64_t address = access.addresses[lane];
  const unsigned bytes = access.in.bytes * access.in.count;
  std::string text = "accesses " + std::to_string(bytes) + " bytes at " + hexadecimal(address) + ", ";
  if (const auto freed = space_.find_freed(pointer(address)))
    throw Raised{FaultKind::use_after_free, text + "which were freed (" + freed->name + ")", lane};
  const CachedRange* before = nullptr;
  for (const CachedRange& each : ranges_) {
    if (each.begin <= address) before = &each;
  }
  if (before == nullptr) throw Raised{FaultKind::bounds, text + "which is not registered", lane};
  const auto range = space_.find(pointer(before->begin));
  text += std::to_string(address - before->begin) + " bytes into " + std::to_string(before->end - before->begin) +
          " bytes at " + hexadecimal(before->begin) + (range && !range->name.empty() ? " (" + range->name + ")" : "");
  throw Raised{FaultKind::bounds, text, lane};
}

const GlobalMemory::CachedRange& GlobalMemory::range_of(const Access& access, std::uint32_t lane) {
  const std::uint64_t address = access.addresses[lane];
  const std::uint64_t end = address + access.in.bytes * access.in.count;
  if (last_range_ < ranges_.size()) {
    const CachedRange& last = ranges_[last_range_];
    if (address >= last.begin && end <= last.end) return last;
  }
  const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                     [](std::uint64_t wanted, const CachedRange& range) { return wanted < range.end; });
  if (next == ranges_.end() || address < next->begin || end > next->end) raise_bounds(access, lane);
  last_range_ = static_cast<std::size_t>(next - ranges_.begin());
  return *next;
}

void GlobalMemory::check_ranges(const Access& access, bool writes) {
  const unsigned bytes = access.in.bytes * access.in.count;
  const int device = access.block.running->launch.module->device();
  for (std::uint32_t left = access.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
    const CachedRange& range = range_of(access, lane);
    if (range.replicas) throw Raised{FaultKind::state_space, "accesses a multicast address without multimem", lane};
    if (access.addresses[lane] % bytes != 0)
      throw Raised{FaultKind::alignment,
                   "address " + hexadecimal(access.addresses[lane]) + " is not a multiple of " + std::to_string(bytes),
                   lane};
    if ((range.devices >> device & 1) == 0)
      throw Raised{FaultKind::access_denied,
                   "device " + std::to_string(device) + " has no access to " + hexadecimal(access.addresses[lane]),
                   lane};
    if (!range.tracks) continue;
    for (unsigned done = 0; done < bytes; done += 8) {
      Granule& granule = shadow_.at(access.addresses[lane] + done);
      const std::uint8_t mask = byte_mask(access.addresses[lane] + done, bytes - done);
      if (writes) granule.written |= mask;
      if (!writes && (granule.written & mask) != mask)
        throw Raised{FaultKind::uninitialised,
                     "reads memory at " + hexadecimal(access.addresses[lane] + done) + " that was never written", lane};
    }
  }
}

std::vector<std::array<std::uint64_t, 32>> GlobalMemory::replicas(const Access& access) {
  const auto first = static_cast<std::uint32_t>(__builtin_ctz(access.mask));
  const CachedRange range = range_of(access, first);
  if (!range.replicas) throw Raised{FaultKind::state_space, "executes multimem at an ordinary address", first};
  const int device = access.block.running->launch.module->device();
  if ((range.devices >> device & 1) == 0)
    throw Raised{FaultKind::access_denied, "device " + std::to_string(device) + " did not map the multicast object",
                 first};
  const std::vector<std::byte*> begins = range.replicas();
  if (begins.empty())
    throw Raised{FaultKind::bounds, "accesses a multicast object to which devices bound no memory", first};
  std::vector<std::array<std::uint64_t, 32>> all;
  for (std::byte* const begin : begins) {
    all.emplace_back();
    for (std::uint32_t left = access.mask; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
      if (range_of(access, lane).begin != range.begin)
        throw Raised{FaultKind::bounds, "accesses several multicast objects at once", lane};
      all.back()[lane] = reinterpret_cast<std::uint64_t>(begin) + (access.addresses[lane] - range.begin);
    }
  }
  return all;
}

void GlobalMemory::check_race(Access& access, Shadow& shadow, std::uint32_t lane, bool writes) {
  if (access.is_covered(lane, writes)) return;
  const unsigned bytes = access.in.bytes * access.in.count;
  const Event now = event_of(access.block, access.warp_index, lane);
  Cell cell;
  cell.block = now.block;
  cell.epoch = now.epoch;
  cell.clock = now.clock;
  cell.thread = now.thread;
  cell.site = access.pc;
  cell.writes = writes;
  cell.strong = is_strong(access.in.order);
  cell.scope = access.in.order == Order::volatile_ ? Scope::system : access.in.scope;
  cell.size = __builtin_ctz(element_bytes(access.in)) & 3;
  const View& view = *access.warp.threads[lane].view;
  for (unsigned done = 0; done < bytes; done += 8) {
    const std::uint64_t address = access.addresses[lane] + done;
    cell.bytes = byte_mask(address, bytes - done);
    const auto other = record_access(shadow.at(address), cell, view, clocks_);
    if (other) throw RaisedRace{*other, cell, address, lane};
  }
}

void GlobalMemory::acquire(const Access& access, Shadow& shadow, std::uint32_t lane) {
  const unsigned bytes = access.in.bytes * access.in.count, size = element_bytes(access.in);
  for (unsigned done = 0; done < bytes; done += size)
    acquire_element(access, shadow, lane, element_at(access.addresses[lane], access.data[lane], done, size));
}

// Relaxed and volatile loads of vectors are loads of data, whose values from the host need no record.
void GlobalMemory::acquire_element(const Access& access, Shadow& shadow, std::uint32_t lane, const Element& element) {
  ThreadClocks& thread = access.warp.threads[lane];
  const Scope scope = access.in.order == Order::volatile_ ? Scope::system : access.in.scope;
  const bool published = shadow.at(element.address).published;
  const Publication* found = published ? shadow.find_publication(element.address) : nullptr;
  if (found == nullptr || found->value != element.value) {
    const bool is_data = !acquires(access.in.order) && access.in.bytes * access.in.count != element.bytes;
    if (&shadow != &shadow_ || is_data) return;
    found = publish_outside(element);
  }
  if (!found->view || !clocks_.in_scope(found->block, found->scope, access.block.number, scope)) return;
  const auto needed = static_cast<std::size_t>(clocks_.scope_of(found->block, access.block.number));
  ViewRef& view = acquires(access.in.order) ? thread.view : thread.pending[needed];
  view = clocks_.join(view, found->view);
}

// A fill stored the value, or the host or another process did, at the latest now.
const Publication* GlobalMemory::publish_outside(const Element& element) {
  const ViewRef* const filled = fill_of(element);
  View view = filled != nullptr ? **filled : *outside();
  view.references = 0;
  if (filled == nullptr) view.floor = stores_;
  shadow_.at(element.address).published = true;
  Publication& publication = shadow_.publish(element.address);
  publication = {element.value, ViewRef(std::move(view)), Scope::system, 0};
  return &publication;
}

const ViewRef* GlobalMemory::fill_of(const Element& element) {
  const std::uint8_t mask = byte_mask(element.address, element.bytes);
  std::uint32_t last = 0;
  const ViewRef* view = nullptr;
  for (const Cell& cell : shadow_.at(element.address).cells) {
    if (!cell.writes || (cell.bytes & mask) == 0) continue;
    const auto fill = fills_.find(cell.block);
    if (fill == fills_.end() || (cell.bytes & mask) != mask) return nullptr;
    std::uint64_t filled = 0;
    std::memset(&filled, static_cast<int>(fill->second.value), element.bytes);
    if (filled != element.value) return nullptr;
    if (cell.block > last) last = cell.block, view = &fill->second.view;
  }
  return view;
}

ViewRef GlobalMemory::published_by(const Access& access, std::uint32_t lane, Scope& scope) {
  ThreadClocks& thread = access.warp.threads[lane];
  const Order order = access.in.order;
  scope = access.in.scope;
  ViewRef view;
  if (order == Order::release || order == Order::acquire_release || order == Order::sequential) {
    view = clocks_.with_self(thread.view, event_of(access.block, access.warp_index, lane));
    ++thread.clock;
  } else if (is_strong(order) && thread.fenced) {
    view = thread.fenced;
    scope = std::min(scope, thread.fence_scope);
  }
  if (view && scope == Scope::system) released_ = clocks_.join(released_, view);
  return view;
}

void GlobalMemory::load(Access& access) {
  check_ranges(access, false);
  for (std::uint32_t left = access.mask; left != 0; left &= left - 1)
    load_lane(access, static_cast<std::uint32_t>(__builtin_ctz(left)));
}

void GlobalMemory::load_lane(Access& access, std::uint32_t lane) {
  const Instruction& in = access.in;
  if (options_.detects_races) check_race(access, shadow_, lane, false);
  const unsigned bytes = in.bytes * in.count;
  const auto order = acquires(in.order) ? std::memory_order_acquire : std::memory_order_relaxed;
  std::array<std::uint64_t, 4>& data = access.data[lane];
  load_words({access.addresses[lane], bytes, in.bytes == 16}, data.data(), order);
  if (!access.block.buffer.stores.empty() && load_pending(access, lane)) return;
  if (load_stale(access, lane)) return;
  if (!is_strong(in.order)) return;
  acquire(access, shadow_, lane);
  access.warp.polled_address = access.addresses[lane];
  access.warp.polled_value = data[0];
  access.warp.polled_pc = access.pc;
}

void GlobalMemory::atomic(Access& access, std::uint32_t lane) {
  const Instruction& in = access.in;
  const std::uint64_t address = access.addresses[lane];
  if (options_.detects_races) check_race(access, shadow_, lane, true);
  Scope scope = in.scope;
  const ViewRef view = published_by(access, lane, scope);
  const StoreBuffer& buffer = access.block.buffer;
  const bool fenced = !buffer.stores.empty() && buffer.stores.front()->fences != buffer.fences;
  if (view || fenced) drain_visible(access.block, access.warp_index, 1U << lane);
  drain_overlapping(access.block, address, in.bytes);
  const std::uint64_t granule = load_granule(address);
  const std::uint64_t operand = access.data[lane][0], other = access.data[lane][1];
  const std::uint64_t old = change_word(in, address, operand, other);
  access.data[lane][0] = old;
  const std::uint64_t now = load_word(address, in.bytes, std::memory_order_relaxed);
  ++stores_;
  if (now != old) ++changes_;
  const bool wrote = !(in.action == static_cast<std::uint8_t>(Atomic::compare) && old != operand);
  const Publication* const found = shadow_.at(address).published ? shadow_.find_publication(address) : nullptr;
  ViewRef earlier;
  if (found != nullptr) earlier = found->value == old ? found->view : outside();
  acquire(access, shadow_, lane);
  if (!wrote) return;
  if (options_.loads_stale) remember(address, granule, event_of(access.block, access.warp_index, lane));
  shadow_.at(address).published = true;
  shadow_.publish(address) = {result_of(in, old, operand, other), clocks_.join(earlier, view), scope,
                              access.block.number};
}

void GlobalMemory::fence(Block& block, std::uint32_t warp, std::uint32_t mask, const Instruction& in) {
  if (in.order == Order::sequential) {
    drain_visible(block, warp, mask);
  } else {
    ++block.buffer.fences;
  }
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(__builtin_ctz(left));
    ThreadClocks& thread = block.warps[warp].threads[lane];
    for (std::size_t scope = 0; scope <= static_cast<std::size_t>(in.scope); ++scope)
      thread.view = clocks_.join(thread.view, std::exchange(thread.pending[scope], {}));
    if (in.order == Order::sequential) {
      View view = *thread.view;
      view.references = 0;
      view.floor = stores_;
      thread.view = ViewRef(std::move(view));
    }
    thread.fenced = clocks_.with_self(thread.view, event_of(block, warp, lane));
    thread.fence_scope = in.scope;
    ++thread.clock;
  }
}

}  // namespace tutti::ptx
