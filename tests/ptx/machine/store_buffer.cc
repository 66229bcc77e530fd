// Pending stores and overwritten values of global memory.
#include <algorithm>
#include <ctime>

#include "tests/ptx/machine/global_memory.h"
#include "tests/ptx/machine/words.h"

namespace tutti::ptx {
namespace {

// A relaxed store of a word of 4 bytes may stay pending for milliseconds while its block only waits. Host threads then
// run in between, also on a machine that is busy. Longer relaxed stores are LL messages, which would take as long.
constexpr std::uint32_t kMaxDelay = 2048;

bool overlap(const PendingStore& a, const PendingStore& b) { return a.low < b.high && b.low < a.high; }

// Lets a host thread that waits for a flag run before older stores become visible, also on a busy machine.
void let_host_load() {
  const timespec pause = {0, 50'000};
  nanosleep(&pause, nullptr);
}

template <typename F>
void each_lane(std::uint32_t mask, F&& run) {
  for (; mask != 0; mask &= mask - 1) run(static_cast<std::uint32_t>(__builtin_ctz(mask)));
}

struct Bytes {
  std::uint64_t address = 0;
  std::uint64_t* data = nullptr;
  unsigned count = 0;
};

// Copies the bytes that a store and a load share.
void overlay(const Bytes& from, const Bytes& to) {
  const std::uint64_t begin = std::max(from.address, to.address);
  const std::uint64_t end = std::min(from.address + from.count, to.address + to.count);
  if (begin >= end) return;
  std::memcpy(reinterpret_cast<std::byte*>(to.data) + (begin - to.address),
              reinterpret_cast<const std::byte*>(from.data) + (begin - from.address), end - begin);
}

}  // namespace

void GlobalMemory::count_parts(Block& block, const PendingStore& store, std::uint32_t mask, int by) {
  each_lane(mask, [&](std::uint32_t lane) {
    for (unsigned done = 0; done < store.bytes; done += 8) {
      std::uint16_t& count = block.buffer.filter[StoreBuffer::hash(store.addresses[lane] + done)];
      count = static_cast<std::uint16_t>(count + by);
    }
  });
}

void GlobalMemory::store(Access& access) {
  check_ranges(access, true);
  const Instruction& in = access.in;
  StoreBuffer& buffer = access.block.buffer;
  std::unique_ptr<PendingStore> store;
  if (buffer.spare.empty()) {
    store.reset(new PendingStore);  // Leaves the arrays uninitialised.
  } else {
    store = std::move(buffer.spare.back());
    buffer.spare.pop_back();
  }
  store->mask = access.mask;
  store->warp = static_cast<std::uint8_t>(access.warp_index);
  store->bytes = static_cast<std::uint8_t>(in.bytes * in.count);
  store->unit = in.bytes == 16 ? 16 : std::min<std::uint8_t>(8, store->bytes);
  store->element_bytes = static_cast<std::uint8_t>(element_bytes(in));
  store->is_strong = is_strong(in.order);
  store->is_whole = in.order == Order::volatile_;
  store->scope = in.order == Order::volatile_ ? Scope::system : in.scope;
  store->epoch = access.block.epoch;
  store->fences = buffer.fences;
  store->addresses = access.addresses;
  store->data = access.data;
  store->shown_to_block = false;
  const bool delays = in.order == Order::relaxed && store->bytes == 4 && options_.buffers_stores && random_.one_in(4);
  store->delay = delays ? random_.below(kMaxDelay) : 0;
  store->views.clear();
  store->low = ~std::uint64_t{0};
  store->high = 0;
  bool releases = false;
  each_lane(access.mask, [&](std::uint32_t lane) {
    if (options_.detects_races) check_race(access, shadow_, lane, true);
    store->low = std::min(store->low, access.addresses[lane]);
    store->high = std::max(store->high, access.addresses[lane] + store->bytes);
    store->clocks[lane] = access.warp.threads[lane].clock;
    if (!store->is_strong) return;
    Scope scope = store->scope;
    ViewRef view = published_by(access, lane, scope);
    if (!view) return;
    store->views.resize(32);
    store->views[lane] = std::move(view);
    store->scope = scope;
    releases = true;
  });
  if (releases && in.order == Order::release) drain_visible(access.block, access.warp_index, access.mask);
  count_parts(access.block, *store, store->mask, 1);
  buffer.stores.push_back(std::move(store));
  if (!options_.buffers_stores) return drain_all(access.block);
  ++late_stores_;
  while (buffer.stores.size() > buffer.capacity) drain_some(access.block);
}

bool GlobalMemory::load_pending(Access& access, std::uint32_t lane) {
  const std::uint64_t address = access.addresses[lane];
  const unsigned bytes = access.in.bytes * access.in.count;
  const StoreBuffer& buffer = access.block.buffer;
  bool possible = false;
  for (unsigned done = 0; done < bytes; done += 8)
    possible = possible || buffer.filter[StoreBuffer::hash(address + done)] != 0;
  if (!possible) return false;
  bool found = false;
  for (const auto& store : buffer.stores) {
    if (address >= store->high || address + bytes <= store->low) continue;
    const std::uint32_t own = store->warp == access.warp_index ? 1U << lane : 0;
    each_lane(store->mask & (store->shown_to_block ? ~0U : own), [&](std::uint32_t from) {
      if (store->addresses[from] >= address + bytes || address >= store->addresses[from] + store->bytes) return;
      overlay({store->addresses[from], store->data[from].data(), store->bytes},
              {address, access.data[lane].data(), bytes});
      found = true;
    });
  }
  return found;
}

void GlobalMemory::drain_lane(Block& block, PendingStore& store, std::uint32_t lane) {
  const std::uint64_t address = store.addresses[lane];
  const Event writer = {block.number, store.epoch, store.clocks[lane],
                        static_cast<std::uint16_t>(store.warp * 32 + lane)};
  std::uint64_t old[4] = {};
  load_words({address, store.bytes, false}, old, std::memory_order_relaxed);
  if (options_.loads_stale && (store.bytes <= 8 || store.is_whole)) {
    for (unsigned done = 0; done < store.bytes; done += 8)
      remember(address + done, load_granule(address + done), writer);
  }
  const auto order = store.is_strong ? std::memory_order_release : std::memory_order_relaxed;
  store_words({address, store.bytes, store.unit == 16}, store.data[lane].data(), order);
  ++stores_;
  std::uint64_t now[4] = {};
  load_words({address, store.bytes, false}, now, std::memory_order_relaxed);
  if (std::memcmp(old, now, sizeof now) != 0) ++changes_;
  if (store.is_strong) publish(block, store, lane);
}

// A thread that acquires the flag of a line, which a warp stored by volatile stores, sees the whole line.
void GlobalMemory::publish(const Block& block, const PendingStore& store, std::uint32_t lane) {
  ViewRef view = store.views.empty() ? ViewRef() : store.views[lane];
  if (store.is_whole) {
    View line;
    line.floor = stores_;
    view = clocks_.join(view, ViewRef(std::move(line)));
  }
  for (unsigned done = 0; done < store.bytes; done += store.element_bytes) {
    const Element element = element_at(store.addresses[lane], store.data[lane], done, store.element_bytes);
    shadow_.at(element.address).published = true;
    shadow_.publish(element.address) = {element.value, view, store.scope, block.number};
  }
}

void GlobalMemory::drain(Block& block, std::size_t index, std::uint32_t mask) {
  PendingStore& store = *block.buffer.stores[index];
  mask &= store.mask;
  each_lane(mask, [&](std::uint32_t lane) { drain_lane(block, store, lane); });
  count_parts(block, store, mask, -1);
  store.mask &= ~mask;
}

void GlobalMemory::remove_empty(Block& block) {
  std::erase_if(block.buffer.stores, [&](auto& store) {
    if (store->mask != 0) return false;
    block.buffer.spare.push_back(std::move(store));
    return true;
  });
}

// Threads see their own stores, and those that a barrier showed them.
void GlobalMemory::drain_visible(Block& block, std::uint32_t warp, std::uint32_t mask) {
  for (std::size_t i = 0; i < block.buffer.stores.size(); ++i) {
    const PendingStore& store = *block.buffer.stores[i];
    std::uint32_t visible = store.shown_to_block ? ~0U : store.warp == warp ? mask : 0;
    if (store.is_whole && (visible & store.mask) != 0) visible = ~0U;
    drain(block, i, visible);
  }
  remove_empty(block);
}

void GlobalMemory::drain_overlapping(Block& block, std::uint64_t address, std::uint32_t bytes) {
  if (block.buffer.filter[StoreBuffer::hash(address)] == 0) return;
  for (std::size_t i = 0; i < block.buffer.stores.size(); ++i) {
    const PendingStore& store = *block.buffer.stores[i];
    if (address < store.high && store.low < address + bytes) drain(block, i, ~0U);
  }
  remove_empty(block);
}

void GlobalMemory::drain_some(Block& block) {
  auto& stores = block.buffer.stores;
  if (stores.empty()) return;
  std::size_t chosen = random_.below(static_cast<std::uint32_t>(stores.size()));
  if (stores[chosen]->delay > 0 && block.live > 0 && stores.size() <= block.buffer.capacity) {
    --stores[chosen]->delay;
    return;
  }
  for (std::size_t older = 0; older < chosen; ++older) {
    const bool fenced = stores[older]->fences != stores[chosen]->fences;
    if (!fenced && !overlap(*stores[older], *stores[chosen])) continue;
    chosen = older;  // Stores to the same bytes keep their order, and so do those before and after a fence.
    older = ~std::size_t{0};
  }
  std::uint32_t mask = ~0U;
  if (!stores[chosen]->is_whole && random_.one_in(4)) mask = static_cast<std::uint32_t>(random_.next() >> 32);
  const PendingStore& store = *stores[chosen];
  const bool is_flag = store.is_strong && store.bytes == 4 && store.scope == Scope::system;  // Not an LL message.
  const bool overtakes = chosen > 0 && is_flag;
  drain(block, chosen, mask);
  remove_empty(block);
  if (overtakes) let_host_load();
}

void GlobalMemory::drain_all(Block& block) {
  while (!block.buffer.stores.empty()) drain_some(block);
}

void GlobalMemory::show_to_block(Block& block) {
  for (const auto& store : block.buffer.stores) store->shown_to_block = true;
}

void GlobalMemory::remember(std::uint64_t address, std::uint64_t granule, const Event& writer) {
  Granule& shadow = shadow_.at(address);
  const std::uint16_t index = next_history_;
  next_history_ = static_cast<std::uint16_t>(next_history_ + 1U < history_.size() ? next_history_ + 1 : 1);
  Overwritten& entry = history_[index];
  entry = {};
  entry.granule = address & ~7ULL;
  entry.value = granule;
  entry.number = stores_ + 1;
  entry.writer = writer;
  entry.older = shadow.history;
  shadow.history = index;
}

bool GlobalMemory::may_skip(const Overwritten& value, const Event& now, const View& view) const {
  if (value.number <= view.floor || value.seen_by == value.seen.size()) return false;
  for (std::uint8_t i = 0; i < value.seen_by; ++i) {
    if (value.seen[i].block == now.block || clocks_.ordered(value.seen[i], now, view)) return false;
  }
  return !clocks_.ordered(value.writer, now, view);
}

// Returns an old value now and then. Acquire loads return the newest one.
bool GlobalMemory::load_stale(Access& access, std::uint32_t lane) {
  const Instruction& in = access.in;
  if (!options_.loads_stale) return false;
  const bool may = !acquires(in.order) && (in.count == 1 ? in.bytes <= 8 : in.bytes == 8);
  bool stale = false;
  for (unsigned done = 0; done < in.bytes * in.count; done += 8) {
    const std::uint64_t address = access.addresses[lane] + done;
    const bool old = may && load_old(access, lane, address, access.data[lane][done / 8]);
    if (!old && is_strong(in.order)) see_newest(event_of(access.block, access.warp_index, lane), address);
    stale = stale || old;
  }
  if (stale) ++stale_loads_;
  return stale;
}

bool GlobalMemory::load_old(const Access& access, std::uint32_t lane, std::uint64_t address, std::uint64_t& data) {
  std::uint16_t index = shadow_.at(address).history;
  if (index == 0 || !random_.one_in(4)) return false;
  const Event now = event_of(access.block, access.warp_index, lane);
  const View& view = *access.warp.threads[lane].view;
  const Overwritten* chosen = nullptr;
  for (std::uint64_t younger = ~std::uint64_t{0}; index != 0; index = history_[index].older) {
    const Overwritten& entry = history_[index];
    if (entry.granule != (address & ~7ULL) || entry.number >= younger || !may_skip(entry, now, view)) break;
    chosen = &entry;
    younger = entry.number;
    if (random_.one_in(2)) break;
  }
  if (chosen == nullptr) return false;
  data = chosen->value >> (8 * (address & 7));
  if (access.in.bytes < 8) data &= (std::uint64_t{1} << (8 * access.in.bytes)) - 1;
  Overwritten& older = history_[chosen->older];
  if (chosen->older != 0 && older.granule == chosen->granule && older.number < chosen->number &&
      older.seen_by < older.seen.size()) {
    older.seen[older.seen_by++] = now;
  }
  return true;
}

// The thread block must not return to older values of this word, nor must blocks that learn of the load.
void GlobalMemory::see_newest(const Event& now, std::uint64_t address) {
  const std::uint16_t index = shadow_.at(address).history;
  Overwritten& entry = history_[index];
  if (index == 0 || entry.granule != (address & ~7ULL) || entry.seen_by == entry.seen.size()) return;
  for (std::uint8_t i = 0; i < entry.seen_by; ++i) {
    if (entry.seen[i].block == now.block) return;
  }
  entry.seen[entry.seen_by++] = now;
}

}  // namespace tutti::ptx
