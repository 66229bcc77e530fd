// Memory of the process as kernels see it: checks, store buffers, old values, atomics, and races.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/ptx/machine/block.h"
#include "tests/ptx/machine/random.h"

namespace tutti::ptx {

// One memory instruction of a warp.
struct Access {
  // Leaves the arrays uninitialised, since there are many accesses.
  Access(Block& of_block, Warp& of_warp, const Instruction& instruction)
      : block(of_block), warp(of_warp), in(instruction) {}

  // Returns true if the thread need not be checked. The first two threads with the same view that read a granule stand
  // for all others: at least one of the two is not the thread that wrote it.
  bool is_covered(std::uint32_t lane, bool writes) {
    const std::uint64_t granule = addresses[lane] / 8;
    const View* const view = &*warp.threads[lane].view;
    const bool same = !writes && granule == last_granule && view == last_view && in.bytes * in.count <= 8;
    last_granule = granule;
    last_view = view;
    repetitions = same ? repetitions + 1 : 0;
    return repetitions >= 2;
  }

  Block& block;
  Warp& warp;
  const Instruction& in;
  std::uint32_t warp_index = 0;
  std::uint32_t pc = 0;
  std::uint32_t mask = 0;
  std::array<std::uint64_t, 32> addresses;
  std::uint64_t last_granule = 0;
  const View* last_view = nullptr;
  std::uint32_t repetitions = 0;
  std::array<std::array<std::uint64_t, 4>, 32> data;  // [thread], in memory order.
};

// Elements of vectors, and halves of 16 bytes, are accesses of their own.
inline unsigned element_bytes(const Instruction& in) { return in.bytes < 8 ? in.bytes : 8; }
struct Element {
  std::uint64_t address = 0, value = 0;
  unsigned bytes = 0;
};
// The element that begins `offset` bytes behind the address of an access.
inline Element element_at(std::uint64_t address, const std::array<std::uint64_t, 4>& data, unsigned offset,
                          unsigned bytes) {
  const std::uint64_t mask = bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1;
  return {address + offset, data[offset / 8] >> (8 * (offset % 8)) & mask, bytes};
}

inline bool is_strong(Order order) { return order != Order::weak; }
inline bool acquires(Order order) {
  return order == Order::acquire || order == Order::acquire_release || order == Order::sequential;
}

// Values that stores overwrote recently. A load that is not ordered after the store may still return them.
struct Overwritten {
  std::uint64_t granule = 0, value = 0;
  std::uint64_t number = 0;  // Number of the store, over all.
  Event writer;
  std::uint16_t older = 0;  // The value before.
  std::uint8_t seen_by = 0;
  std::array<Event, 4> seen{};  // First loads, each of another block, that saw what the store wrote.
};

class GlobalMemory {
 public:
  GlobalMemory(AddressSpace& space, Clocks& clocks, const MachineOptions& options, Random& random);

  void refresh();  // Follows changes of the address space.

  // Each of these throws Raised.
  void load(Access& access);
  void store(Access& access);
  void atomic(Access& access, std::uint32_t lane);  // data[lane]: operands; then the old value in [0].
  void check_ranges(const Access& access, bool writes);
  // Addresses of the accessed bytes in the memory of each device: the access at each of them. Throws Raised unless all
  // threads access the same range of multicast addresses.
  std::vector<std::array<std::uint64_t, 32>> replicas(const Access& access);
  // Race detection of one thread's access, in global or shared memory.
  void check_race(Access& access, Shadow& shadow, std::uint32_t lane, bool writes);
  // Synchronizes a strong load or an atomic, whose data[lane] is the value that it read.
  void acquire(const Access& access, Shadow& shadow, std::uint32_t lane);
  ViewRef published_by(const Access& access, std::uint32_t lane, Scope& scope);

  void fence(Block& block, std::uint32_t warp, std::uint32_t mask, const Instruction& in);

  // Executes a copy that is at `now` and knows `view`. Throws RaisedRace before it changes memory.
  void execute(const CopyLaunch& copy, const Event& now, const ViewRef& view);

  void drain_some(Block& block);  // One pending store, in any order that coherence allows.
  void drain_all(Block& block);
  void show_to_block(Block& block);
  void drain_visible(Block& block, std::uint32_t warp, std::uint32_t mask);  // Pending stores that the threads see.

  void end_launches(std::uint64_t stamp);  // The host knows what operations up to this one did.

  std::uint64_t stores() const { return stores_; }
  std::uint64_t changes() const { return changes_; }  // Stores that changed memory.
  std::uint64_t stale_loads() const { return stale_loads_; }
  std::uint64_t late_stores() const { return late_stores_; }
  // Events that the host and other processes may know by releases of kernels, without HostClock.
  const ViewRef& released() const { return released_; }
  Event event_of(const Block& block, std::uint32_t warp, std::uint32_t lane) const;
  Clocks& clocks() { return clocks_; }

 private:
  struct CachedRange {
    std::uint64_t begin = 0, end = 0, devices = 0;
    bool tracks = false;
    std::function<std::vector<std::byte*>()> replicas;
  };
  const CachedRange& range_of(const Access& access, std::uint32_t lane);
  [[noreturn]] void raise_bounds(const Access& access, std::uint32_t lane) const;
  void load_lane(Access& access, std::uint32_t lane);
  bool load_pending(Access& access, std::uint32_t lane);
  bool load_stale(Access& access, std::uint32_t lane);
  bool load_old(const Access& access, std::uint32_t lane, std::uint64_t address, std::uint64_t& data);
  void acquire_element(const Access& access, Shadow& shadow, std::uint32_t lane, const Element& element);
  void see_newest(const Event& now, std::uint64_t address);
  bool may_skip(const Overwritten& value, const Event& now, const View& view) const;
  void drain(Block& block, std::size_t index, std::uint32_t mask);
  void drain_lane(Block& block, PendingStore& store, std::uint32_t lane);
  void publish(const Block& block, const PendingStore& store, std::uint32_t lane);
  // Records the access `cell` to those bytes that are registered.
  void record_bytes(Cell cell, std::uint64_t begin, std::uint64_t end, const View& view);
  ViewRef outside() const;  // Knowledge of the host and of other processes.
  // Publishes a value that no kernel stored.
  const Publication* publish_outside(const Element& element);
  // Returns the view after the fill that wrote the value, if no later write of the bytes is recorded; else null.
  const ViewRef* fill_of(const Element& element);
  void drain_overlapping(Block& block, std::uint64_t address, std::uint32_t bytes);
  void remember(std::uint64_t address, std::uint64_t granule, const Event& writer);
  void remove_empty(Block& block);
  void count_parts(Block& block, const PendingStore& store, std::uint32_t mask, int by);

  AddressSpace& space_;
  Clocks& clocks_;
  const MachineOptions& options_;
  Random& random_;
  Shadow shadow_;
  std::vector<CachedRange> ranges_;
  std::size_t last_range_ = 0;
  std::uint64_t version_ = 0;
  std::vector<Overwritten> history_;
  std::uint16_t next_history_ = 1;
  struct Fill {
    std::byte value;
    ViewRef view;
  };
  static constexpr std::size_t kMaxFills = 4096;
  std::map<std::uint32_t, Fill> fills_;  // The last kMaxFills, by number of the operation's block.
  ViewRef released_;
  std::uint64_t stores_ = 0, changes_ = 0, stale_loads_ = 0, late_stores_ = 0;
};

}  // namespace tutti::ptx
