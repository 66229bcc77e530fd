#include "tests/ptx/runtime/pageable.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "tests/ptx/runtime/memory.h"

namespace tutti::cudart {
namespace {

using Address = std::uintptr_t;

// Ranges that the machine knows as pageable memory: end by begin.
std::map<Address, Address>& shown() {
  static auto& ranges = *new std::map<Address, Address>;
  return ranges;
}

std::byte* as_bytes(Address address) { return reinterpret_cast<std::byte*>(address); }

void show(Address begin, Address end) {
  const ptx::MemoryRange range = {.begin = as_bytes(begin),
                                  .bytes = end - begin,
                                  .kind = ptx::MemoryKind::host,
                                  .devices = ptx::kAllDevices,
                                  .name = "pageable memory"};
  if (address_space().add(range).ok()) shown()[begin] = end;
}

// Returns the end of the range that covers the address, or 0. Sets `next` to the first covered address after it.
Address end_of_cover(Address address, Address& next) {
  const auto after = shown().upper_bound(address);
  if (after != shown().end()) next = std::min(next, after->first);
  if (after != shown().begin() && std::prev(after)->second > address) return std::prev(after)->second;
  const Allocation* allocation = find_allocation(as_bytes(address));
  if (allocation != nullptr) return reinterpret_cast<Address>(allocation->begin) + allocation->bytes;
  const auto allocated = reinterpret_cast<Address>(next_allocation(as_bytes(address)));
  if (allocated != 0) next = std::min(next, allocated);
  return 0;
}

void show_uncovered(Address begin, Address end) {
  while (begin < end) {
    Address next = end;
    const Address covered = end_of_cover(begin, next);
    if (covered == 0) show(begin, next);
    begin = covered == 0 ? next : covered;
  }
}

}  // namespace

void show_pageable_memory() {
  if (!node_options().pageable) return;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "r"), std::fclose);
  char line[512], access[8];
  while (maps != nullptr && std::fgets(line, sizeof line, maps.get()) != nullptr) {
    Address begin = 0, end = 0;
    if (std::sscanf(line, "%lx-%lx %7s", &begin, &end, access) == 3 && access[1] == 'w' && access[3] == 'p')
      show_uncovered(begin, end);
  }
}

void hide_pageable_memory(const std::byte* begin, std::size_t bytes) {
  const auto first = reinterpret_cast<Address>(begin), last = first + bytes;
  for (auto at = shown().begin(); at != shown().end();) {
    const bool overlaps = at->first < last && at->second > first;
    if (overlaps) (void)address_space().remove(as_bytes(at->first));
    at = overlaps ? shown().erase(at) : std::next(at);
  }
}

}  // namespace tutti::cudart
